//! The function `matches` of CEL with patterns that stay compiled.
//!
//! The real server compiles the patterns of a rule once, with the rule. The expression library here
//! compiles one each time it is evaluated, which took longer than all other rules of an object together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, FunctionContext};
use regex::Regex;

/// Patterns kept at most; rules that compute theirs begin anew.
const KEPT_MAX: usize = 256;

thread_local! {
    static KEPT: RefCell<BTreeMap<Arc<String>, Regex>> = const { RefCell::new(BTreeMap::new()) };
}

/// Replaces the library's own `matches`.
pub(super) fn with_kept(mut functions: Context<'static>) -> Context<'static> {
    functions.add_function("matches", matches);
    functions
}

fn matches(
    call: &FunctionContext<'_, '_>,
    This(text): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<bool, ExecutionError> {
    KEPT.with_borrow_mut(|kept| {
        if let Some(regex) = kept.get(&pattern) {
            return Ok(regex.is_match(&text));
        }
        let regex = Regex::new(&pattern)
            .map_err(|error| call.error(format!("'{pattern}' not a valid regex:\n{error}")))?;
        let found = regex.is_match(&text);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(pattern, regex);
        Ok(found)
    })
}
