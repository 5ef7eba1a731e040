//! Conditions on a request, such as the `matchConditions` of webhooks.

use kube_cel::cel::objects::Value as Cel;
use kube_cel::cel::parser::Expression;
use serde_json::Value;

use super::types::Kind;
use super::values::untyped;
use super::{FUNCTIONS, check, error_text, parse};

/// What conditions may look at.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

/// A compiled condition.
#[derive(Debug)]
pub struct Condition {
    text: String,
    program: Expression,
}

impl Condition {
    /// Compiles an expression; the error is the server's text.
    pub fn compile(text: &str) -> Result<Self, String> {
        let program = parse(text).map_err(|why| format!("compilation failed: {why}"))?;
        let variables = VARIABLES.map(|name| (name.to_owned(), Kind::Dyn)).to_vec();
        let kind = check::check(text, &program, variables)
            .map_err(|why| format!("compilation failed: {why}"))?;
        if !kind.fits(&Kind::Bool) {
            return Err(format!("must evaluate to bool but got {kind}"));
        }
        Ok(Self { text: text.to_owned(), program })
    }

    /// Evaluates it on an object, the old object and the request; the error is the server's text.
    pub fn holds(&self, object: &Value, old: &Value, request: &Value) -> Result<bool, String> {
        let fault = |why: &str| {
            let text = &self.text;
            format!("expression '{text}' resulted in error: {why}")
        };
        FUNCTIONS.with(|functions| {
            let mut scope = functions.new_inner_scope();
            for (name, value) in VARIABLES.into_iter().zip([object, old, request]) {
                scope.add_variable_from_value(name, untyped(value));
            }
            match Cel::resolve(&self.program, &scope) {
                Ok(Cel::Bool(holds)) => Ok(holds),
                Ok(_) => Err(fault("no such overload")),
                Err(why) => Err(fault(&error_text(&why))),
            }
        })
    }
}
