//! Where the parts of an expression stand in its source.
//!
//! The parser keeps no positions, so the checker walks the expression in the order of its source and
//! finds each operator, name and dot as the next token of that text.

/// A token and the character at which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    text: String,
    start: usize,
    literal: bool,
}

/// The tokens of an expression that were not passed yet.
#[derive(Debug)]
pub(super) struct Tokens {
    tokens: Vec<Token>,
    next: usize,
}

impl Tokens {
    pub(super) fn of(source: &str) -> Self {
        Self { tokens: scan(source), next: 0 }
    }

    /// Passes the next token of that text; answers where it starts.
    pub(super) fn pass(&mut self, text: &str) -> usize {
        self.pass_where(|tokens| tokens.first().is_some_and(|token| token.text == text))
    }

    /// Passes the next literal.
    pub(super) fn pass_literal(&mut self) -> usize {
        self.pass_where(|tokens| tokens.first().is_some_and(|token| token.literal))
    }

    /// Passes the next dot (or `.?`) before one of these names, and the name.
    pub(super) fn pass_dot(&mut self, names: &[&str]) -> usize {
        let is_name =
            |token: Option<&Token>| token.is_some_and(|token| names.contains(&token.text.as_str()));
        let dot = self.pass_where(|tokens| {
            let starts = tokens.first().is_some_and(|token| token.text == ".");
            let optional = tokens.get(1).is_some_and(|token| token.text == "?");
            starts && is_name(tokens.get(if optional { 2 } else { 1 }))
        });
        self.pass_where(|tokens| is_name(tokens.first()));
        dot
    }

    fn pass_where(&mut self, fits: impl Fn(&[Token]) -> bool) -> usize {
        let rest = self.tokens.get(self.next..).unwrap_or_default();
        let found = (0..rest.len()).find(|skipped| fits(rest.get(*skipped..).unwrap_or_default()));
        let Some(skipped) = found else { return 0 };
        let start = rest.get(skipped).map_or(0, |token| token.start);
        self.next += skipped + 1;
        start
    }
}

/// How deep the tree of an expression can be at most: brackets, and operators in a row, which stand
/// within each other, too.
pub(super) fn nesting(source: &str) -> usize {
    let (mut deepest, mut total) = (0, 0);
    // Operators of the open brackets, since the last one that begins a new branch.
    let mut open = vec![0];
    for token in scan(source) {
        match token.text.as_str() {
            "(" | "[" | "{" => {
                open.push(1);
                total += 1;
            }
            ")" | "]" | "}" if open.len() > 1 => {
                total -= open.pop().unwrap_or_default();
            }
            "," | "&&" | "||" => {
                let chain = open.last_mut().map(|count| std::mem::replace(count, 1));
                total = total + 1 - chain.unwrap_or(1);
            }
            "." | "?" | "!" | "-" | "+" | "*" | "/" | "%" | "<" | ">" | "==" | "!=" | "<="
            | ">=" | "in" => {
                if let Some(count) = open.last_mut() {
                    *count += 1;
                }
                total += 1;
            }
            _ => {}
        }
        deepest = deepest.max(total);
    }
    deepest
}

fn scan(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let mut tokens = Vec::new();
    let mut index = 0;
    while index < chars.len() {
        let start = index;
        let char = at(index);
        if char.is_whitespace() {
            index += 1;
            continue;
        }
        let mut literal = false;
        if char == '/' && at(index + 1) == '/' {
            while index < chars.len() && at(index) != '\n' {
                index += 1;
            }
            continue;
        }
        if let Some(end) = string_end(&chars, index) {
            literal = true;
            index = end;
        } else if char.is_ascii_digit() || (char == '.' && at(index + 1).is_ascii_digit()) {
            literal = true;
            while is_name(at(index)) || (at(index) == '.' && at(index + 1).is_ascii_digit()) {
                index += 1;
            }
        } else if is_name(char) {
            while is_name(at(index)) {
                index += 1;
            }
        } else {
            let pair = [char, at(index + 1)];
            let double = matches!(pair, ['&', '&'] | ['|', '|'] | ['=' | '!' | '<' | '>', '=']);
            index += if double { 2 } else { 1 };
        }
        let text: String = chars.get(start..index).unwrap_or_default().iter().collect();
        literal |= matches!(text.as_str(), "true" | "false" | "null");
        tokens.push(Token { text, start, literal });
    }
    tokens
}

/// The end of a string literal that starts here, prefixes (`r`, `b`) included.
fn string_end(chars: &[char], start: usize) -> Option<usize> {
    let at = |index: usize| chars.get(index).copied();
    let mut index = start;
    let mut raw = false;
    while let Some(prefix) = at(index).filter(|char| matches!(char, 'r' | 'R' | 'b' | 'B')) {
        raw |= matches!(prefix, 'r' | 'R');
        index += 1;
        if index - start > 2 {
            return None;
        }
    }
    let quote = at(index).filter(|char| matches!(char, '\'' | '"'))?;
    let triple = at(index + 1) == Some(quote) && at(index + 2) == Some(quote);
    let width = if triple { 3 } else { 1 };
    index += width;
    while index < chars.len() {
        if at(index) == Some('\\') && !raw {
            index += 2;
        } else if (0..width).all(|offset| at(index + offset) == Some(quote)) {
            return Some(index + width);
        } else {
            index += 1;
        }
    }
    Some(chars.len())
}
