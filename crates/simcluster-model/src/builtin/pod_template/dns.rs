//! How the containers of a Pod resolve names.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::value::{at, items, text};
use crate::names;

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// Characters of all search paths with a space between them.
const SEARCH_CHARS_MAX: usize = 2048;

/// The `dnsConfig` of a Pod's spec.
pub(super) fn validate(spec: &Value, path: &str, faults: &mut Faults) {
    let here = format!("{path}.dnsConfig");
    let config = at(spec, &["dnsConfig"]);
    let servers = items(spec, &["dnsConfig", "nameservers"]);
    if text(spec, &["dnsPolicy"]) == "None" {
        if config.is_none() {
            faults.required(here, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            faults.required(format!("{here}.nameservers"), why);
        }
    }
    if servers.len() > NAMESERVERS_MAX {
        let why = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        faults.invalid(format!("{here}.nameservers"), &json!(servers), &why);
    }
    for (index, server) in servers.iter().enumerate() {
        let ip = server.as_str().unwrap_or_default();
        faults.texts(&format!("{here}.nameservers[{index}]"), ip, names::ip(ip));
    }
    searches(items(spec, &["dnsConfig", "searches"]), &format!("{here}.searches"), faults);
    for (index, option) in items(spec, &["dnsConfig", "options"]).iter().enumerate() {
        if text(option, &["name"]).is_empty() {
            faults.required(format!("{here}.options[{index}]"), "must not be empty");
        }
    }
}

fn searches(searches: &[Value], here: &str, faults: &mut Faults) {
    if searches.len() > SEARCHES_MAX {
        let why = format!("must not have more than {SEARCHES_MAX} search paths");
        faults.invalid(here, &json!(searches), &why);
    }
    let texts = || searches.iter().map(|one| one.as_str().unwrap_or_default());
    let chars = texts().map(str::len).sum::<usize>() + searches.len().saturating_sub(1);
    if chars > SEARCH_CHARS_MAX {
        let why = format!(
            "must not have more than {SEARCH_CHARS_MAX} characters (including spaces) in the search \
             list"
        );
        faults.invalid(here, &json!(searches), &why);
    }
    for (index, search) in texts().enumerate().filter(|(_, search)| *search != ".") {
        let name = search.strip_suffix('.').unwrap_or(search);
        let wrong = names::dns1123_subdomain_with_underscore(name);
        faults.texts(&format!("{here}[{index}]"), name, wrong);
    }
}
