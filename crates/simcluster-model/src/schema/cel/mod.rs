//! `x-kubernetes-validations`: CEL rules of a CRD version, compiled once and evaluated with the API
//! server's words.

mod check;
mod condition;
mod functions;
mod regexes;
mod tokens;
mod types;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::objects::{OptionalValue, Value as Cel};
use kube_cel::cel::parser::{Expression, Parser};
use kube_cel::cel::{Context, ExecutionError};
use serde_json::Value;

pub use self::condition::Condition;
use self::types::Kind;
use self::values::to_cel;
use super::correlate::find_by_keys;
use super::path::Path;
use super::{ListType, Schema};
use crate::field::{FieldError, FieldErrorKind, Verdict};
use crate::stack::on_large_stack;

/// Messages of `messageExpression` beyond this size are dropped for `message`.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

const NO_SUCH_OVERLOAD: &str = "no such overload";

/// The rules of a node and of what is below it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The JSON type of the node, as printed for evaluation errors.
    kind: String,
    /// Whether the value has `apiVersion`, `kind` and `metadata`.
    resource: bool,
    own: Vec<Rule>,
    /// Whether a rule here or below needs a large stack.
    deep: bool,
    items: Option<Box<Rules>>,
    additional: Option<Box<Rules>>,
    properties: BTreeMap<String, Rules>,
    all_of: Vec<Rules>,
}

#[derive(Debug)]
struct Rule {
    text: String,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
    /// `fieldPath` in the form that is appended to the node's path.
    field_path: String,
    optional_old_self: bool,
    uses_old_self: bool,
    program: Result<Expression, String>,
}

/// What a rule may look at.
#[derive(Clone, Copy)]
struct Subject<'a> {
    value: &'a Value,
    old: Option<&'a Value>,
    schema: &'a Schema,
    /// Whether faults are forgiven because nothing changed here or around here.
    unchanged: bool,
}

thread_local! {
    static FUNCTIONS: Context<'static> = regexes::with_kept(Context::default().with_all());
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none.
    pub(super) fn compile(source: &Value) -> Option<Self> {
        Self::node(source, source, true)
    }

    /// `rules` is where the rules stand: the node itself or a branch of its `allOf`.
    fn node(rules: &Value, source: &Value, root: bool) -> Option<Self> {
        let pair = |key: &str| {
            let node = source.get(key).filter(|node| node.is_object())?;
            Self::node(rules.get(key)?, node, false).map(Box::new)
        };
        let properties = rules
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, field)| {
                let node = source.get("properties")?.get(name)?;
                Some((name.clone(), Self::node(field, node, false)?))
            })
            .collect();
        let all_of = rules.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let list = rules.get("x-kubernetes-validations").and_then(Value::as_array);
        let embedded = source.get("x-kubernetes-embedded-resource").and_then(Value::as_bool);
        let mut compiled = Self {
            kind: source.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
            resource: root || embedded == Some(true),
            own: list
                .into_iter()
                .flatten()
                .map(|rule| with_stack_for(rule, || Rule::compile(rule, source)))
                .collect(),
            deep: list.into_iter().flatten().any(is_deep),
            items: pair("items"),
            additional: pair("additionalProperties"),
            properties,
            all_of: all_of.filter_map(|branch| Self::node(branch, source, root)).collect(),
        };
        let deep_below = compiled.below().any(|rules| rules.deep);
        compiled.deep |= deep_below;
        let empty = compiled.own.is_empty()
            && compiled.items.is_none()
            && compiled.additional.is_none()
            && compiled.properties.is_empty()
            && compiled.all_of.is_empty();
        (!empty).then_some(compiled)
    }

    /// The rules of what is below the node.
    fn below(&self) -> impl Iterator<Item = &Self> {
        let boxed = self.items.iter().chain(&self.additional).map(|rules| &**rules);
        boxed.chain(self.properties.values()).chain(&self.all_of)
    }

    /// Evaluates all rules of an object.
    pub(super) fn validate(&self, object: &Value, old: Option<&Value>, schema: &Schema) -> Verdict {
        if self.deep
            && let Ok(verdict) = on_large_stack(|| self.validate_here(object, old, schema))
        {
            return verdict;
        }
        self.validate_here(object, old, schema)
    }

    fn validate_here(&self, object: &Value, old: Option<&Value>, schema: &Schema) -> Verdict {
        let mut verdict = Verdict::default();
        let unchanged = old == Some(object);
        FUNCTIONS.with(|functions| {
            let subject = Subject { value: object, old, schema, unchanged };
            self.walk(subject, &Path::ROOT, functions, &mut verdict);
        });
        verdict
    }

    fn walk(
        &self,
        subject: Subject<'_>,
        path: &Path<'_>,
        functions: &Context<'_>,
        verdict: &mut Verdict,
    ) {
        if subject.value.is_null() {
            return;
        }
        self.evaluate(subject, path, functions, verdict);
        for branch in &self.all_of {
            // Branches are never ratcheted.
            let subject = Subject { unchanged: false, ..subject };
            branch.walk(subject, path, functions, verdict);
        }
        match subject.value {
            Value::Array(items) => {
                let Some((rules, schema)) = self.items.as_ref().zip(subject.schema.items.as_ref())
                else {
                    return;
                };
                for (index, item) in items.iter().enumerate() {
                    let old = old_item(subject, item);
                    let below = subject.below(item, old, schema);
                    rules.walk(below, &path.index(index), functions, verdict);
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    let old = subject.old.and_then(|old| old.get(key));
                    let declared = subject.schema.properties.get(key);
                    if let Some((rules, schema)) = self.properties.get(key).zip(declared) {
                        let below = subject.below(value, old, schema);
                        rules.walk(below, &path.field(key), functions, verdict);
                    } else if let Some((rules, schema)) =
                        self.additional.as_ref().zip(subject.schema.additional_properties.as_ref())
                    {
                        let below = subject.below(value, old, schema);
                        rules.walk(below, &path.key(key), functions, verdict);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn evaluate(
        &self,
        subject: Subject<'_>,
        path: &Path<'_>,
        functions: &Context<'_>,
        verdict: &mut Verdict,
    ) {
        let wanted =
            |rule: &&Rule| !rule.uses_old_self || subject.old.is_some() || rule.optional_old_self;
        if !self.own.iter().any(|rule| wanted(&rule)) {
            return;
        }
        let mut scope = functions.new_inner_scope();
        scope.add_variable_from_value("self", to_cel(subject.value, subject.schema, self.resource));
        let old = subject.old.map(|old| to_cel(old, subject.schema, self.resource));
        if let Some(old) = &old {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        let mut optional_scope = scope.new_inner_scope();
        let optional = old.map_or_else(OptionalValue::none, OptionalValue::of);
        optional_scope.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(optional)));
        for rule in self.own.iter().filter(wanted) {
            let rule_scope = if rule.optional_old_self { &optional_scope } else { &scope };
            let Some(fault) = rule.fault(self, subject.value, path, rule_scope, &scope) else {
                continue;
            };
            if fault.can_be_forgiven && !rule.uses_old_self && subject.unchanged {
                verdict.forgiven.push(fault.fault);
            } else {
                verdict.faults.push(fault.fault);
            }
        }
    }

    /// Whether the value of a failed rule is too large to be printed.
    fn is_list_or_object(&self) -> bool {
        matches!(self.kind.as_str(), "object" | "array")
    }
}

impl<'a> Subject<'a> {
    fn below(self, value: &'a Value, old: Option<&'a Value>, schema: &'a Schema) -> Self {
        let unchanged = match old {
            Some(old) => super::correlate::Old { value: old, schema }.equals(value),
            // What has no counterpart counts as unchanged if everything around it is.
            None => self.unchanged,
        };
        Self { value, old: old.filter(|old| !old.is_null()), schema, unchanged }
    }
}

/// The old item of the same key; only items of map lists have one.
fn old_item<'a>(subject: Subject<'a>, item: &Value) -> Option<&'a Value> {
    let ListType::Map(keys) = &subject.schema.list_type else { return None };
    find_by_keys(subject.old?.as_array()?, keys, item)
}

struct RuleFault {
    fault: FieldError,
    can_be_forgiven: bool,
}

impl Rule {
    fn compile(source: &Value, node: &Value) -> Self {
        let text = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let program = parse(text("rule"));
        let expression = Some(text("messageExpression")).filter(|text| !text.is_empty());
        let uses_old_self = [program.as_ref().ok()]
            .into_iter()
            .flatten()
            .any(|program| program.references().has_variable("oldSelf"));
        Self {
            text: text("rule").to_owned(),
            message: text("message").to_owned(),
            message_expression: expression.and_then(|text| parse(text).ok()),
            reason: text("reason").to_owned(),
            field_path: field_path(text("fieldPath"), node),
            optional_old_self: source.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
            uses_old_self,
            program,
        }
    }

    /// What a rule is called in errors.
    fn label(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    fn fault(
        &self,
        node: &Rules,
        value: &Value,
        path: &Path<'_>,
        scope: &Context<'_>,
        message_scope: &Context<'_>,
    ) -> Option<RuleFault> {
        let invalid = |detail: &str| {
            let fault =
                FieldError::invalid(path.bracketed(), &Value::from(node.kind.as_str()), detail);
            Some(RuleFault { fault, can_be_forgiven: false })
        };
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return invalid(&format!("rule compile error: {why}")),
        };
        match Cel::resolve(program, scope) {
            Ok(Cel::Bool(true)) => return None,
            Ok(_) => {}
            Err(why) => return invalid(&evaluation_error(&why, self.label())),
        }
        let message = self.message_expression.as_ref().and_then(|expression| {
            let Ok(Cel::String(text)) = Cel::resolve(expression, message_scope) else {
                return None;
            };
            let text = text.trim().to_owned();
            let usable =
                !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_BYTES_MAX;
            usable.then_some(text)
        });
        let detail = message.unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed rule: {}", self.text),
            message => message.to_owned(),
        });
        let field = match (path.bracketed().as_str(), self.field_path.as_str()) {
            (field, "") => field.to_owned(),
            ("<nil>", below) => below.to_owned(),
            (field, below) => format!("{field}.{below}"),
        };
        let omit = node.is_list_or_object();
        let fault = match self.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(field, &detail),
            "FieldValueRequired" => FieldError::required(field, &detail),
            "FieldValueDuplicate" if omit => FieldError {
                kind: FieldErrorKind::Duplicate,
                field,
                body: "Duplicate value".to_owned(),
            },
            "FieldValueDuplicate" => FieldError::duplicate(field, value),
            _ if omit => FieldError::invalid_omitted(field, &detail),
            _ => FieldError::invalid(field, value, &detail),
        };
        Some(RuleFault { fault, can_be_forgiven: true })
    }
}

/// What the compilation of a rule shows.
#[derive(Debug, Default)]
pub(crate) struct RuleCheck {
    /// Why the rule cannot be used.
    pub(crate) rule_error: Option<String>,
    /// Why its `messageExpression` cannot be used.
    pub(crate) message_error: Option<String>,
    /// Whether it compares with the old value.
    pub(crate) uses_old_self: bool,
}

/// Compiles a rule of a schema node (`source`) for its faults. `root` says that the node is the whole
/// object.
pub(crate) fn check_rule(rule: &Value, source: &Value, root: bool) -> RuleCheck {
    with_stack_for(rule, || check_here(rule, source, root))
}

fn check_here(rule: &Value, source: &Value, root: bool) -> RuleCheck {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let optional = rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
    let schema = Arc::new(Schema::parse_field(source));
    let variables = || {
        let own = Kind::of(&schema, root || schema.embedded_resource).unwrap_or(Kind::Dyn);
        let old = if optional { Kind::Optional(Box::new(own.clone())) } else { own.clone() };
        vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)]
    };
    let compiled = |expression: &str| {
        let program = parse(expression)?;
        let kind = check::check(expression, &program, variables())?;
        Ok::<_, String>((program, kind))
    };
    let mut result = RuleCheck::default();
    match compiled(text("rule")) {
        Ok((program, kind)) => {
            result.uses_old_self = program.references().has_variable("oldSelf");
            if !kind.fits(&Kind::Bool) {
                result.rule_error = Some("cel expression must evaluate to a bool".to_owned());
            }
        }
        Err(why) => result.rule_error = Some(format!("compilation failed: {why}")),
    }
    let message = text("messageExpression");
    if message.is_empty() || result.rule_error.is_some() {
        return result;
    }
    result.message_error = match compiled(message) {
        Ok((_, kind)) if kind.fits(&Kind::String) => None,
        Ok(_) => Some("messageExpression must evaluate to a string".to_owned()),
        Err(why) => Some(format!("messageExpression compilation failed: {why}")),
    };
    result
}

/// The name of a function in one of the schema's rules that the server has and this one has not.
pub(crate) fn unsupported_function(schema: &Value) -> Option<String> {
    let own = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    let found = own.into_iter().flatten().find_map(|rule| {
        with_stack_for(rule, || {
            let programs = expressions(rule).into_iter().filter_map(|text| parse(text).ok());
            programs.into_iter().find_map(|program| unsupported_call(&program))
        })
    });
    let object = |key: &str| schema.get(key).filter(|node| node.is_object());
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    found
        .or_else(|| object("items").and_then(unsupported_function))
        .or_else(|| object("additionalProperties").and_then(unsupported_function))
        .or_else(|| fields.map(|(_, field)| field).find_map(unsupported_function))
}

fn unsupported_call(expression: &Expression) -> Option<String> {
    use kube_cel::cel::common::ast::{EntryExpr, Expr};
    match &expression.expr {
        Expr::Call(call) => {
            let own = functions::is_unsupported(&call.func_name, call.args.len());
            let below = call.target.iter().map(|target| &**target).chain(&call.args);
            if own {
                Some(call.func_name.clone())
            } else {
                below.into_iter().find_map(unsupported_call)
            }
        }
        Expr::Comprehension(inner) => {
            unsupported_call(&inner.iter_range).or_else(|| unsupported_call(&inner.loop_step))
        }
        Expr::List(list) => list.elements.iter().find_map(unsupported_call),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                unsupported_call(&entry.key).or_else(|| unsupported_call(&entry.value))
            }
            EntryExpr::StructField(field) => unsupported_call(&field.value),
        }),
        Expr::Select(select) => unsupported_call(&select.operand),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => None,
    }
}

/// Longest expression, in characters.
const EXPRESSION_CHARS_MAX: usize = 100_000;

/// How deep the tree of an expression may be. The real server takes 250 levels; the parser here gives up
/// at 96, and what it needs of the stack for more is without measure.
const NESTING_MAX: usize = 90;

/// How deep the tree of an expression may be that is handled on the caller's stack, of which each level
/// takes up to 40 KiB in a debug build.
const SHALLOW: usize = 16;

/// Parses an expression. A deep one may be parsed, walked and evaluated on a large stack only.
fn parse(text: &str) -> Result<Expression, String> {
    let chars = text.chars().count();
    if chars > EXPRESSION_CHARS_MAX {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {chars}, limit \
             {EXPRESSION_CHARS_MAX}"
        ));
    }
    if tokens::nesting(text) > NESTING_MAX {
        return Err(format!(
            "ERROR: <input>:-1:0: expression recursion limit exceeded: {NESTING_MAX}"
        ));
    }
    // Optional syntax (`a.?b`) is on, as on the server.
    let parser = Parser::new().enable_optional_syntax(true);
    // The parser leaves out the space that cel-go puts before the lines of the source.
    parser.parse(text).map_err(|why| why.to_string().replace("\n| ", "\n | "))
}

/// The expressions of a rule.
fn expressions(rule: &Value) -> [&str; 2] {
    ["rule", "messageExpression"]
        .map(|key| rule.get(key).and_then(Value::as_str).unwrap_or_default().trim())
}

/// Whether an expression of a rule needs a large stack.
fn is_deep(rule: &Value) -> bool {
    expressions(rule).into_iter().any(|text| tokens::nesting(text) > SHALLOW)
}

/// Does something with a rule, on a large stack if the rule needs it.
fn with_stack_for<T: Send>(rule: &Value, work: impl Fn() -> T + Send + Sync) -> T {
    if is_deep(rule)
        && let Ok(done) = on_large_stack(&work)
    {
        return done;
    }
    work()
}

/// An evaluation error of a rule in the words of cel-go and the API server.
fn evaluation_error(why: &ExecutionError, rule: &str) -> String {
    let text = error_text(why);
    if text == NO_SUCH_OVERLOAD {
        return format!(
            "'{text}': call arguments did not match a supported operator, function or macro \
             signature for rule: {rule}"
        );
    }
    format!("{text} evaluating rule: {rule}")
}

/// An evaluation error in the words of cel-go.
fn error_text(why: &ExecutionError) -> String {
    match why {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, Cel::UInt(_), _) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedIndex(..)
        | ExecutionError::UnsupportedMapIndex(..)
        | ExecutionError::UnsupportedListIndex(..) => NO_SUCH_OVERLOAD.to_owned(),
        ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::UndeclaredReference(_)
        | ExecutionError::MissingArgumentOrTarget
        | ExecutionError::UnsupportedFunctionCallIdentifierType(_)
        | ExecutionError::UnsupportedFieldsConstruction(_)
        | ExecutionError::IndexOutOfBounds(_)
        | _ => why.to_string(),
    }
}

/// `fieldPath` (`.a['b']`) as it is appended to a path: `a.b`, or `a[b]` where `a` is a map.
fn field_path(source: &str, node: &Value) -> String {
    let mut node = Some(node);
    let mut text = String::new();
    let mut rest = source;
    while !rest.is_empty() {
        let quoted = rest.strip_prefix("['").and_then(|rest| rest.split_once("']"));
        let (name, after) = match (quoted, rest.strip_prefix('.')) {
            (Some(found), _) => found,
            (None, Some(rest)) => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
            (None, None) => return text,
        };
        let fields = node.and_then(|node| node.get("properties"));
        if fields.is_some() {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
        } else {
            text.push('[');
            text.push_str(name);
            text.push(']');
        }
        node = match fields {
            Some(fields) => fields.get(name),
            None => node.and_then(|node| node.get("additionalProperties")),
        };
        rest = after;
    }
    text
}
