//! Type checking of rules, with the words of cel-go. What is not known here passes.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators,
};

use super::functions::{Answer, answer, is_library, is_type};
use super::tokens::Tokens;
use super::types::Kind;
use crate::schema::go_regex;

/// Names of the macros that walk over lists and maps.
const MACROS: [&str; 6] = ["all", "exists", "exists_one", "existsOne", "map", "filter"];

/// Checks an expression. Answers its type, or cel-go's text of all faults.
pub(super) fn check(
    source: &str,
    expression: &IdedExpr,
    variables: Vec<(String, Kind)>,
) -> Result<Kind, String> {
    let mut checker = Checker { tokens: Tokens::of(source), variables, faults: Vec::new() };
    let kind = checker.kind(expression);
    if checker.faults.is_empty() {
        return Ok(kind);
    }
    checker.faults.sort_by_key(|(at, _)| *at);
    let texts: Vec<String> =
        checker.faults.iter().map(|(at, why)| described(source, *at, why)).collect();
    Err(texts.join("\n"))
}

/// A fault as cel-go prints it: the place, the line, and a mark below it.
pub(super) fn described(source: &str, at: usize, why: &str) -> String {
    let before: String = source.chars().take(at).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let text = source.lines().nth(line).unwrap_or_default();
    let dots = ".".repeat(column);
    format!("ERROR: <input>:{}:{}: {why}\n | {text}\n | {dots}^", line + 1, column + 1)
}

struct Checker {
    tokens: Tokens,
    variables: Vec<(String, Kind)>,
    faults: Vec<(usize, String)>,
}

impl Checker {
    fn fault(&mut self, at: usize, why: String) -> Kind {
        self.faults.push((at, why));
        Kind::Dyn
    }

    fn mismatch(&mut self, at: usize, function: &str, applied: &str) -> Kind {
        self.fault(
            at,
            format!("found no matching overload for '{function}' applied to '{applied}'"),
        )
    }

    fn kind(&mut self, expression: &IdedExpr) -> Kind {
        match &expression.expr {
            Expr::Unspecified | Expr::Struct(_) => Kind::Dyn,
            Expr::Ident(name) => self.ident(name),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => {
                let kinds: Vec<Kind> = list.elements.iter().map(|item| self.kind(item)).collect();
                Kind::List(Box::new(common(&kinds)))
            }
            Expr::Map(map) => {
                let mut kinds = Vec::new();
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            self.kind(&entry.key);
                            kinds.push(self.kind(&entry.value));
                        }
                        EntryExpr::StructField(field) => {
                            kinds.push(self.kind(&field.value));
                        }
                    }
                }
                Kind::Map(Box::new(common(&kinds)))
            }
        }
    }

    fn ident(&mut self, name: &str) -> Kind {
        if name.starts_with('@') {
            return Kind::Dyn;
        }
        let at = self.tokens.pass(name);
        if let Some((_, kind)) = self.variables.iter().rev().find(|(known, _)| known == name) {
            return kind.clone();
        }
        if is_type(name) {
            return Kind::Dyn;
        }
        self.fault(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn literal(&mut self, literal: &LiteralValue) -> Kind {
        self.tokens.pass_literal();
        match literal {
            LiteralValue::Boolean(_) => Kind::Bool,
            LiteralValue::Bytes(_) => Kind::Bytes,
            LiteralValue::Double(_) => Kind::Double,
            LiteralValue::Int(_) => Kind::Int,
            LiteralValue::Null => Kind::Null,
            LiteralValue::String(_) => Kind::String,
            LiteralValue::UInt(_) => Kind::Uint,
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Kind {
        let bracket = select.test.then(|| {
            self.tokens.pass("has");
            self.tokens.pass("(")
        });
        let operand = self.kind(&select.operand);
        let dot = self.tokens.pass_dot(&[&select.field]);
        let kind = self.field(&operand, &select.field, bracket.unwrap_or(dot));
        if select.test { Kind::Bool } else { kind }
    }

    fn field(&mut self, operand: &Kind, name: &str, at: usize) -> Kind {
        if let Kind::Object(schema, scope) = operand {
            return Kind::field(schema, *scope, name)
                .unwrap_or_else(|| self.fault(at, format!("undefined field '{name}'")));
        }
        if let Kind::Map(values) = operand {
            return (**values).clone();
        }
        if matches!(operand, Kind::Dyn | Kind::Optional(_)) {
            return Kind::Dyn;
        }
        self.fault(at, format!("type '{operand}' does not support field selection"))
    }

    fn call(&mut self, call: &CallExpr) -> Kind {
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            (operators::CONDITIONAL, None, [condition, yes, no]) => {
                let condition = self.kind(condition);
                let at = self.tokens.pass("?");
                let yes = self.kind(yes);
                self.tokens.pass(":");
                let no = self.kind(no);
                if !condition.fits(&Kind::Bool) || !yes.fits(&no) {
                    return self.mismatch(at, "_?_:_", &format!("({condition}, {yes}, {no})"));
                }
                if yes.is_dyn() { no } else { yes }
            }
            (operators::LOGICAL_NOT, None, [operand]) => {
                let at = self.tokens.pass("!");
                let operand = self.kind(operand);
                if !operand.fits(&Kind::Bool) {
                    self.mismatch(at, "!_", &format!("({operand})"));
                }
                Kind::Bool
            }
            (operators::NEGATE, None, [operand]) => {
                let at = self.tokens.pass("-");
                let operand = self.kind(operand);
                if matches!(operand, Kind::Int | Kind::Double | Kind::Dyn) {
                    operand
                } else {
                    self.mismatch(at, "-_", &format!("({operand})"))
                }
            }
            (operators::INDEX, None, [operand, index]) => self.index(operand, index),
            (operators::OPT_SELECT, None, [operand, field]) => {
                let operand = self.kind(operand);
                let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
                    return Kind::Dyn;
                };
                let name: &str = name.inner();
                let at = self.tokens.pass_dot(&[name]);
                let kind = self.field(&operand, name, at);
                Kind::Optional(Box::new(kind))
            }
            (operator, None, [left, right]) if symbol(operator).is_some() => {
                self.binary(operator, left, right)
            }
            (name, target, arguments) => self.function(name, target, arguments),
        }
    }

    fn index(&mut self, operand: &IdedExpr, index: &IdedExpr) -> Kind {
        let operand = self.kind(operand);
        let at = self.tokens.pass("[");
        let index = self.kind(index);
        match (&operand, &index) {
            (Kind::Dyn | Kind::Optional(_), _) => Kind::Dyn,
            (Kind::List(items), Kind::Int | Kind::Dyn) => (**items).clone(),
            (Kind::Map(values), Kind::String | Kind::Dyn) => (**values).clone(),
            _ => self.mismatch(at, "_[_]", &format!("({operand}, {index})")),
        }
    }

    fn binary(&mut self, operator: &str, left: &IdedExpr, right: &IdedExpr) -> Kind {
        let left = self.kind(left);
        let at = self.tokens.pass(symbol(operator).unwrap_or_default());
        let right = self.kind(right);
        if let Some(kind) = outcome(operator, &left, &right) {
            return kind;
        }
        self.mismatch(at, operator, &format!("({left}, {right})"));
        let arithmetic = ["+", "-", "*", "/", "%"].contains(&symbol(operator).unwrap_or_default());
        if arithmetic { Kind::Dyn } else { Kind::Bool }
    }

    fn function(&mut self, name: &str, target: Option<&IdedExpr>, arguments: &[IdedExpr]) -> Kind {
        let library = target.is_some_and(|target| {
            matches!(&target.expr, Expr::Ident(known) if is_library(known)
                && !self.variables.iter().any(|(variable, _)| variable == known))
        });
        let receiver = target.filter(|_| !library).map(|target| self.kind(target));
        if target.is_some() {
            self.tokens.pass_dot(&[name]);
        } else {
            self.tokens.pass(name);
        }
        let at = self.tokens.pass("(");
        let mut kinds = Vec::new();
        for argument in arguments {
            let pattern = Some(argument).filter(|_| name == "matches").and_then(text_literal);
            let before = self.faults.len();
            if let Some(pattern) = pattern {
                let place = self.tokens.pass_literal();
                if go_regex(pattern).is_err() && self.faults.len() == before {
                    self.fault(place, "invalid matches argument".to_owned());
                }
                kinds.push(Kind::String);
            } else {
                kinds.push(self.kind(argument));
            }
        }
        let Some(answer) = answer(name) else {
            return self.fault(at, format!("undeclared reference to '{name}' (in container '')"));
        };
        if let Some(applied) = wrong_arguments(name, receiver.as_ref(), &kinds) {
            return self.mismatch(at, name, &applied);
        }
        match (answer, receiver) {
            (Answer::Item, Some(Kind::List(items))) => *items,
            (Answer::Kind(kind), _) | (Answer::Same, Some(kind)) => kind,
            (Answer::Item | Answer::Same | Answer::Unknown, _) => Kind::Dyn,
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Kind {
        let range = self.kind(&comprehension.iter_range);
        let at = self.tokens.pass_dot(&MACROS);
        self.tokens.pass(&comprehension.iter_var);
        self.tokens.pass(",");
        let item = if let Kind::List(items) = &range {
            (**items).clone()
        } else if let Kind::Map(_) = &range {
            Kind::String
        } else if matches!(range, Kind::Dyn | Kind::Optional(_)) {
            Kind::Dyn
        } else {
            let why = format!(
                "expression of type '{range}' cannot be range of a comprehension (must be list, map, \
                 or dynamic)"
            );
            self.fault(at, why)
        };
        self.variables.push((comprehension.iter_var.clone(), item.clone()));
        let kind = self.step(comprehension, &item);
        self.variables.pop();
        kind
    }

    /// The macro's own expressions, which stand in what the parser made of it.
    fn step(&mut self, comprehension: &ComprehensionExpr, item: &Kind) -> Kind {
        let Expr::Call(step) = &comprehension.loop_step.expr else { return Kind::Dyn };
        match step.args.as_slice() {
            // all, exists: what was found so far, and the predicate.
            [_, predicate] if step.func_name != operators::ADD => {
                self.kind(predicate);
                Kind::Bool
            }
            // map: what was found so far, and a list of one.
            [_, list] => {
                let made = listed(list).map(|element| self.kind(element));
                Kind::List(Box::new(made.unwrap_or(Kind::Dyn)))
            }
            // exists_one, filter, map with a filter.
            [predicate, add, _] => {
                self.kind(predicate);
                let Some(element) = added(add) else { return Kind::Bool };
                let itself = matches!(&element.expr, Expr::Ident(name)
                    if *name == comprehension.iter_var);
                let made = if itself { item.clone() } else { self.kind(element) };
                Kind::List(Box::new(made))
            }
            _ => Kind::Dyn,
        }
    }
}

/// The text of a string literal.
fn text_literal(expression: &IdedExpr) -> Option<&str> {
    let Expr::Literal(LiteralValue::String(text)) = &expression.expr else { return None };
    Some(text.inner())
}

/// The element of a list of one.
fn listed(expression: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::List(list) = &expression.expr else { return None };
    list.elements.first()
}

/// The element that a macro adds to the list of what it found.
fn added(expression: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &expression.expr else { return None };
    let [_, list] = call.args.as_slice() else { return None };
    listed(list)
}

/// The type that all have in common.
fn common(kinds: &[Kind]) -> Kind {
    match kinds.split_first() {
        Some((first, rest)) if rest.iter().all(|kind| kind.fits(first)) => first.clone(),
        Some(_) | None => Kind::Dyn,
    }
}

/// How a binary operator is written.
fn symbol(operator: &str) -> Option<&'static str> {
    Some(match operator {
        operators::LOGICAL_AND => "&&",
        operators::LOGICAL_OR => "||",
        operators::ADD => "+",
        operators::SUBSTRACT => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        operators::EQUALS => "==",
        operators::NOT_EQUALS => "!=",
        operators::GREATER => ">",
        operators::GREATER_EQUALS => ">=",
        operators::LESS => "<",
        operators::LESS_EQUALS => "<=",
        operators::IN => "in",
        _ => return None,
    })
}

/// The type of a binary operation; `None` if there is none for these types.
fn outcome(operator: &str, left: &Kind, right: &Kind) -> Option<Kind> {
    let some_dyn = left.is_dyn() || right.is_dyn();
    match operator {
        operators::LOGICAL_AND | operators::LOGICAL_OR => {
            (left.fits(&Kind::Bool) && right.fits(&Kind::Bool)).then_some(Kind::Bool)
        }
        operators::EQUALS | operators::NOT_EQUALS => left.fits(right).then_some(Kind::Bool),
        operators::IN => {
            let good = if let Kind::List(items) = right {
                left.fits(items)
            } else {
                right.is_dyn() || matches!(right, Kind::Map(_)) && left.fits(&Kind::String)
            };
            good.then_some(Kind::Bool)
        }
        operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS => {
            let ordered = |kind: &Kind| {
                kind.is_number()
                    || matches!(
                        kind,
                        Kind::Bool
                            | Kind::String
                            | Kind::Bytes
                            | Kind::Timestamp
                            | Kind::Duration
                            | Kind::Dyn
                    )
            };
            let numbers = left.is_number() && right.is_number();
            let alike = left.fits(right) && ordered(left) && ordered(right);
            (numbers || alike).then_some(Kind::Bool)
        }
        _ if some_dyn => Some(Kind::Dyn),
        operators::MODULO => match (left, right) {
            (Kind::Int, Kind::Int) => Some(Kind::Int),
            (Kind::Uint, Kind::Uint) => Some(Kind::Uint),
            _ => None,
        },
        _ => match (operator, left, right) {
            (_, Kind::Int, Kind::Int) => Some(Kind::Int),
            (_, Kind::Uint, Kind::Uint) => Some(Kind::Uint),
            (_, Kind::Double, Kind::Double) => Some(Kind::Double),
            (operators::ADD, Kind::String, Kind::String) => Some(Kind::String),
            (operators::ADD, Kind::Bytes, Kind::Bytes) => Some(Kind::Bytes),
            (operators::ADD, Kind::List(_), Kind::List(_)) if left.fits(right) => {
                Some(left.clone())
            }
            (operators::ADD | operators::SUBSTRACT, Kind::Timestamp, Kind::Duration)
            | (operators::ADD, Kind::Duration, Kind::Timestamp) => Some(Kind::Timestamp),
            (operators::ADD | operators::SUBSTRACT, Kind::Duration, Kind::Duration)
            | (operators::SUBSTRACT, Kind::Timestamp, Kind::Timestamp) => Some(Kind::Duration),
            _ => None,
        },
    }
}

/// The types a function was applied to, if it takes no such types.
fn wrong_arguments(name: &str, receiver: Option<&Kind>, arguments: &[Kind]) -> Option<String> {
    let good = match (name, receiver, arguments) {
        ("size", None, [value]) | ("size", Some(value), []) => {
            matches!(value, Kind::String | Kind::Bytes | Kind::List(_) | Kind::Map(_) | Kind::Dyn)
        }
        ("startsWith" | "endsWith" | "matches", Some(text), [argument])
        | ("contains", Some(text @ Kind::String), [argument]) => {
            text.fits(&Kind::String) && argument.fits(&Kind::String)
        }
        _ => true,
    };
    if good {
        return None;
    }
    let list: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let receiver = receiver.map(|kind| format!("{kind}.")).unwrap_or_default();
    Some(format!("{receiver}({})", list.join(", ")))
}
