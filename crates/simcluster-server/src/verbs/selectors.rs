//! Label and field selectors, with the parser errors of the server (rows LI03, LI04).

use std::collections::BTreeSet;

use serde_json::Value;

use simcluster_model::error::ApiError;
use simcluster_model::names;
use simcluster_model::object;
use simcluster_model::resource::Resource;

/// A parsed `labelSelector`: all requirements must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Exists,
    Missing,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Parses the query parameter; an empty text selects everything.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        Parser::new(text).parse().map(Self).map_err(ApiError::bad_request)
    }

    /// Whether everything is selected.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's labels fulfil the selector.
    #[must_use]
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object::metadata(object).get("labels");
        // Null labels of applied custom resources read as empty ones.
        let label = |key: &str| {
            labels.and_then(|all| all.get(key)).map(|value| value.as_str().unwrap_or_default())
        };
        self.0.iter().all(|requirement| requirement.test.holds(label(&requirement.key)))
    }
}

impl Test {
    fn holds(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::Exists => label.is_some(),
            Self::Missing => label.is_none(),
            Self::In(values) => label.is_some_and(|text| values.contains(text)),
            Self::NotIn(values) => !label.is_some_and(|text| values.contains(text)),
            Self::Above(bound) => number().is_some_and(|n| n > *bound),
            Self::Below(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

/// A token: an operator or bracket, a word, or (empty) the end.
struct Parser {
    tokens: Vec<String>,
    position: usize,
}

fn is_operator(token: &str) -> bool {
    matches!(token, ")" | "," | "!" | "==" | "=" | ">" | "<" | "!=" | "(")
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

/// Splits into words and the longest operators; white space separates.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while let Some(first) = rest.chars().next() {
        let end = if is_symbol(first) {
            let two = rest.get(..2).filter(|two| is_operator(two));
            two.map_or(first.len_utf8(), str::len)
        } else {
            let stop = |c: char| is_symbol(c) || matches!(c, ' ' | '\t' | '\r' | '\n');
            rest.find(stop).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token.to_owned());
        rest = after.trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens
}

impl Parser {
    fn new(text: &str) -> Self {
        Self { tokens: tokens(text), position: 0 }
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.position).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.position += 1;
        token
    }

    fn parse(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.peek();
            if token.is_empty() {
                return Ok(requirements);
            }
            if is_operator(token) && token != "!" {
                return Err(format!(
                    "found '{token}', expected: !, identifier, or 'end of string'"
                ));
            }
            let requirement = self.requirement();
            requirements
                .push(requirement.map_err(|e| format!("unable to parse requirement: {e}"))?);
            match self.next().as_str() {
                "" => return Ok(requirements),
                "," => {
                    let after = self.peek();
                    if after.is_empty() || (is_operator(after) && after != "!") {
                        return Err(format!("found '{after}', expected: identifier after ','"));
                    }
                }
                other => {
                    return Err(format!("found '{other}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut key = self.next();
        let negated = key == "!";
        if negated {
            key = self.next();
        }
        if key.is_empty() || is_operator(&key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        check_key(&key)?;
        if negated {
            return Ok(Requirement { key, test: Test::Missing });
        }
        if matches!(self.peek(), "" | ",") {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let operator = self.next();
        let test = match operator.as_str() {
            "in" => Test::In(self.values(&key)?),
            "notin" => Test::NotIn(self.values(&key)?),
            "=" | "==" => Test::In([self.exact_value(&key)?].into()),
            "!=" => Test::NotIn([self.exact_value(&key)?].into()),
            ">" => Test::Above(self.number()?),
            "<" => Test::Below(self.number()?),
            _ => {
                return Err(format!("found '{operator}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        Ok(Requirement { key, test })
    }

    /// `(a,b)`: empty items are empty values.
    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let first = self.peek().to_owned();
        if first.is_empty() || (is_operator(&first) && !matches!(first.as_str(), ")" | ",")) {
            return Err(format!("found '{first}', expected: ',', ')' or identifier"));
        }
        let mut values = BTreeSet::new();
        let mut item = String::new();
        loop {
            let token = self.next();
            match token.as_str() {
                ")" | "," => {
                    values.insert(std::mem::take(&mut item));
                    if token == ")" {
                        break;
                    }
                }
                word if !item.is_empty() => {
                    return Err(format!("found '{word}', expected: ',' or ')'"));
                }
                word if word.is_empty() || is_operator(word) => {
                    return Err(format!("found '{word}', expected: ',', or identifier"));
                }
                word => word.clone_into(&mut item),
            }
        }
        for (index, value) in values.iter().enumerate() {
            check_value(key, index, value)?;
        }
        Ok(values)
    }

    /// The word after `=`; none is the empty value.
    fn exact_value(&mut self, key: &str) -> Result<String, String> {
        let value = self.word()?;
        check_value(key, 0, &value)?;
        Ok(value)
    }

    fn word(&mut self) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        let token = self.next();
        if is_operator(&token) {
            return Err(format!("found '{token}', expected: identifier"));
        }
        Ok(token)
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word()?;
        let fault = || {
            let text = Value::from(word.as_str());
            let what = "for 'Gt', 'Lt' operators, the value must be an integer";
            format!("values[0]: Invalid value: {text}: {what}")
        };
        word.parse().map_err(|_| fault())
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let faults = names::qualified_name(key);
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("<nil>: Invalid value: {}: {}", Value::from(key), faults.join("; ")))
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    let faults = names::label_value(value);
    if faults.is_empty() {
        return Ok(());
    }
    let value = Value::from(value);
    Err(format!("values[{index}][{key}]: Invalid value: {value}: {}", faults.join("; ")))
}

/// A parsed `fieldSelector`: all terms must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldSelector(Vec<Term>);

#[derive(Debug, Clone)]
pub(super) struct Term {
    label: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses the query parameter and checks that the resource supports its labels.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, ApiError> {
        let terms = Self::terms(text)?;
        terms.iter().try_for_each(|term| supported(resource, &term.label))?;
        Ok(Self(terms))
    }

    /// What a query parameter says, whatever the resource.
    pub(super) fn terms(text: &str) -> Result<Vec<Term>, ApiError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((label, equal, value)) = split_term(part) else {
                let why = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(ApiError::bad_request(why));
            };
            terms.push(Term { label: label.to_owned(), value: unescape(value)?, equal });
        }
        Ok(terms)
    }

    /// Whether everything is selected.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object fulfils the selector.
    #[must_use]
    pub(crate) fn matches(&self, resource: &Resource, object: &Value) -> bool {
        self.0.iter().all(|term| {
            let actual = match term.label.as_str() {
                "metadata.name" => object::name(object).to_owned(),
                "metadata.namespace" => object::namespace(object).to_owned(),
                label => resource.strategy.field_label(resource, object, label).unwrap_or_default(),
            };
            (actual == term.value) == term.equal
        })
    }
}

fn supported(resource: &Resource, label: &str) -> Result<(), ApiError> {
    // Custom kinds, and those with labels of their own, do not know the label of a namespace either if
    // they are in none.
    let generic = !resource.custom && !resource.strategy.has_field_labels();
    let placed = resource.namespaced || generic;
    let common = label == "metadata.name" || (label == "metadata.namespace" && placed);
    let own = |label: &str| resource.strategy.field_label(resource, &Value::Null, label).is_some();
    if common || own(label) {
        return Ok(());
    }
    if resource.custom || resource.strategy.has_field_labels() {
        return Err(ApiError::bad_request(format!("field label not supported: {label}")));
    }
    let known = r#"only "metadata.name", "metadata.namespace""#;
    Err(ApiError::bad_request(format!("\"{label}\" is not a known field selector: {known}")))
}

/// Splits at commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == ',' {
            terms.extend(text.get(start..index));
            start = index + 1;
        }
    }
    terms.extend(text.get(start..));
    terms
}

/// Label, whether equal, value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find("!=").into_iter().chain(term.find('=')).min()?;
    let (label, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((label, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((label, true, value))
}

fn unescape(value: &str) -> Result<String, ApiError> {
    let mut out = String::new();
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                next => {
                    let sequence: String = std::iter::once('\\').chain(next).collect();
                    return Err(ApiError::bad_request(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(ApiError::bad_request(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Whether a `metav1.LabelSelector` selects an object; an empty one selects everything.
#[must_use]
pub(crate) fn selects(selector: &Value, object: &Value) -> bool {
    let labels = object::metadata(object).get("labels");
    let label = |key: &str| labels.and_then(|all| all.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let equal = wanted.into_iter().flatten().all(|(key, value)| label(key) == value.as_str());
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    equal
        && expressions.into_iter().flatten().all(|one| {
            let field = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
            let list = one.get("values").and_then(Value::as_array);
            let values = list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let test = match field("operator") {
                "In" => Test::In(values.collect()),
                "NotIn" => Test::NotIn(values.collect()),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Missing,
                _ => return false,
            };
            test.holds(label(field("key")))
        })
}
