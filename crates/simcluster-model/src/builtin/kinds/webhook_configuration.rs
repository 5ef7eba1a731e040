//! Configurations of admission webhooks.

use serde_json::{Value, json};

use crate::builtin::check::Faults;
use crate::builtin::defaults::{Fields, set};
use crate::builtin::kind::{Generation, Kind};
use crate::builtin::kinds::review::is_review;
use crate::builtin::selector::label_selector;
use crate::builtin::value::{at, int, items, objects_mut, text};
use crate::crd::bundle;
use crate::field::FieldError;
use crate::names;
use crate::object;
use crate::schema::Condition;

/// `mutatingwebhookconfigurations`.
pub(super) static MUTATING: Kind = Kind {
    generation: Generation::AllButMetadata,
    allow_unconditional_update: false,
    default: mutating_defaults,
    validate,
    warnings,
    cells: |view| view.named(vec![json!(view.list("/webhooks").len()), view.age()]),
    ..Kind::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
};

/// `validatingwebhookconfigurations`.
pub(super) static VALIDATING: Kind = Kind {
    generation: Generation::AllButMetadata,
    allow_unconditional_update: false,
    default,
    validate,
    warnings,
    cells: |view| view.named(vec![json!(view.list("/webhooks").len()), view.age()]),
    ..Kind::new("admissionregistration.k8s.io", "validatingwebhookconfigurations")
};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The end of the names of configurations that are files of the server.
const STATIC_SUFFIX: &str = ".static.k8s.io";
const CONDITIONS_MAX: usize = 64;

fn mutating_defaults(configuration: &mut Fields) {
    default(configuration);
    for hook in objects_mut(configuration.get_mut("webhooks")) {
        set(hook, "reinvocationPolicy", || json!("Never"));
    }
}

fn default(configuration: &mut Fields) {
    for hook in objects_mut(configuration.get_mut("webhooks")) {
        set(hook, "failurePolicy", || json!("Fail"));
        set(hook, "matchPolicy", || json!("Equivalent"));
        set(hook, "namespaceSelector", || json!({}));
        set(hook, "objectSelector", || json!({}));
        set(hook, "timeoutSeconds", || json!(10));
        for rule in objects_mut(hook.get_mut("rules")) {
            set(rule, "scope", || json!("*"));
        }
        let client = hook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
        if let Some(Value::Object(service)) = client {
            set(service, "port", || json!(443));
        }
    }
}

/// Faults of a configuration of mutating or validating webhooks.
fn validate(configuration: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let name = object::name(configuration);
    if name.ends_with(STATIC_SUFFIX) {
        let why = format!(
            "names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and \
             cannot be managed via the API"
        );
        faults.invalid("metadata.name", &json!(name), &why);
    }
    let mut known: Vec<&str> = Vec::new();
    for (index, hook) in items(configuration, &["webhooks"]).iter().enumerate() {
        let here = format!("webhooks[{index}]");
        webhook(hook, &here, &mut faults);
        review_versions(hook, &format!("{here}.admissionReviewVersions"), &mut faults);
        let name = text(hook, &["name"]);
        if known.contains(&name) && !name.is_empty() {
            faults.duplicate(format!("{here}.name"), &json!(name));
        }
        known.push(name);
    }
    faults.0
}

fn webhook(hook: &Value, here: &str, faults: &mut Faults) {
    full_name(text(hook, &["name"]), &format!("{here}.name"), faults);
    for (index, rule) in items(hook, &["rules"]).iter().enumerate() {
        self::rule(rule, &format!("{here}.rules[{index}]"), faults);
    }
    let mut supported = |field: &str, list: &[&str]| {
        if at(hook, &[field]).is_some() {
            not_supported(&format!("{here}.{field}"), text(hook, &[field]), list, faults);
        }
    };
    supported("failurePolicy", &["Fail", "Ignore"]);
    supported("matchPolicy", &["Equivalent", "Exact"]);
    supported("sideEffects", &["None", "NoneOnDryRun"]);
    if at(hook, &["sideEffects"]).is_none() {
        let why = "must specify one of None, NoneOnDryRun";
        faults.required(format!("{here}.sideEffects"), why);
    }
    if let Some(seconds) = int(hook, &["timeoutSeconds"])
        && !(1..=30).contains(&seconds)
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        faults.invalid(format!("{here}.timeoutSeconds"), &json!(seconds), why);
    }
    for field in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = at(hook, &[field]) {
            label_selector(selector, &format!("{here}.{field}"), faults);
        }
    }
    if at(hook, &["reinvocationPolicy"]).is_some() {
        let policy = text(hook, &["reinvocationPolicy"]);
        let field = format!("{here}.reinvocationPolicy");
        not_supported(&field, policy, &["IfNeeded", "Never"], faults);
    }
    client_config(hook, &format!("{here}.clientConfig"), faults);
    conditions(hook, &format!("{here}.matchConditions"), faults);
}

fn not_supported(field: &str, value: &str, supported: &[&str], faults: &mut Faults) {
    if !supported.contains(&value) {
        let supported: Vec<String> = supported.iter().map(|one| (*one).to_owned()).collect();
        faults.add(FieldError::not_supported(field, &json!(value), &supported));
    }
}

/// A name with at least three parts.
fn full_name(name: &str, field: &str, faults: &mut Faults) {
    let wrong = names::dns1123_subdomain(name);
    if name.is_empty() {
        faults.required(field, "");
    } else if !wrong.is_empty() {
        faults.invalid(field, &json!(name), &wrong.join(","));
    } else if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        faults.invalid(field, &json!(name), why);
    }
}

fn rule(rule: &Value, here: &str, faults: &mut Faults) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    alone(rule, here, "operations", "operations", faults);
    for (index, operation) in items(rule, &["operations"]).iter().enumerate() {
        let operation = operation.as_str().unwrap_or_default();
        not_supported(&format!("{here}.operations[{index}]"), operation, &OPERATIONS, faults);
    }
    alone(rule, here, "apiGroups", "API groups", faults);
    alone(rule, here, "apiVersions", "API versions", faults);
    for (index, version) in items(rule, &["apiVersions"]).iter().enumerate() {
        if version == "" {
            faults.required(format!("{here}.apiVersions[{index}]"), "");
        }
    }
    resources(items(rule, &["resources"]), &format!("{here}.resources"), faults);
    if at(rule, &["scope"]).is_some() {
        let scopes = ["*", "Cluster", "Namespaced"];
        not_supported(&format!("{here}.scope"), text(rule, &["scope"]), &scopes, faults);
    }
}

/// A list that must not be empty, and in which `*` stands alone.
fn alone(rule: &Value, here: &str, field: &str, what: &str, faults: &mut Faults) {
    let list = items(rule, &[field]);
    let path = format!("{here}.{field}");
    if list.is_empty() {
        faults.required(path, "");
    } else if list.len() > 1 && list.iter().any(|one| one == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        faults.invalid(path, &json!(list), &why);
    }
}

fn resources(list: &[Value], path: &str, faults: &mut Faults) {
    if list.is_empty() {
        faults.required(path, "");
    }
    let (mut all_below, mut all_of): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut plain = false;
    for (index, one) in list.iter().enumerate() {
        let (field, name) = (format!("{path}[{index}]"), one.as_str().unwrap_or_default());
        if name.is_empty() {
            faults.required(field, "");
            continue;
        }
        let Some((resource, below)) = name.split_once('/') else {
            plain = name != "*";
            continue;
        };
        if all_below.contains(&resource) {
            let why = format!("if '{resource}/*' is present, must not specify {name}");
            faults.invalid(field.as_str(), one, &why);
        }
        if all_of.contains(&below) {
            let why = format!("if '*/{below}' is present, must not specify {name}");
            faults.invalid(field, one, &why);
        }
        if below == "*" {
            all_below.push(resource);
        }
        if resource == "*" {
            all_of.push(below);
        }
    }
    if list.len() > 1 && list.iter().any(|one| one == "*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        faults.invalid(path, &json!(list), why);
    }
    if plain && list.iter().any(|one| one == "*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        faults.invalid(path, &json!(list), why);
    }
}

fn client_config(hook: &Value, here: &str, faults: &mut Faults) {
    match (at(hook, &["clientConfig", "url"]), at(hook, &["clientConfig", "service"])) {
        (Some(url), None) => {
            let url = url.as_str().unwrap_or_default();
            bundle::url_faults(url, &format!("{here}.url"), &mut faults.0);
        }
        (None, Some(service)) => {
            bundle::service_faults(service, &format!("{here}.service"), &mut faults.0);
        }
        _ => faults.required(here, "exactly one of url or service is required"),
    }
}

fn conditions(hook: &Value, path: &str, faults: &mut Faults) {
    let list = items(hook, &["matchConditions"]);
    if list.len() > CONDITIONS_MAX {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        faults.add(FieldError::too_many(path, count(list.len()), count(CONDITIONS_MAX)));
    }
    let mut known: Vec<&str> = Vec::new();
    for (index, one) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let expression = text(one, &["expression"]).trim();
        if expression.is_empty() {
            faults.required(format!("{here}.expression"), "");
        } else if let Err(why) = Condition::compile(expression) {
            faults.invalid(format!("{here}.expression"), &json!(expression), &why);
        }
        let name = text(one, &["name"]);
        if name.is_empty() {
            faults.required(format!("{here}.name"), "");
            continue;
        }
        faults.texts(&format!("{here}.name"), name, names::qualified_name(name));
        if known.contains(&name) {
            faults.duplicate(format!("{here}.name"), &json!(name));
        }
        known.push(name);
    }
}

fn review_versions(hook: &Value, path: &str, faults: &mut Faults) {
    let list = items(hook, &["admissionReviewVersions"]);
    if list.is_empty() {
        return faults
            .required(path, &format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
    }
    for (index, version) in list.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if list.iter().take(index).any(|before| before == version) {
            faults.invalid(field, version, "duplicate version");
            continue;
        }
        let version = version.as_str().unwrap_or_default();
        faults.texts(&field, version, names::dns1035_label(version));
    }
    let known = |one: &Value| one.as_str().is_some_and(|one| REVIEW_VERSIONS.contains(&one));
    if !list.iter().any(known) {
        let why = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        faults.invalid(path, &json!(list), &why);
    }
}

/// Rules that name what is never stored, and is therefore not shown to webhooks.
fn warnings(configuration: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (index, hook) in items(configuration, &["webhooks"]).iter().enumerate() {
        for (position, rule) in items(hook, &["rules"]).iter().enumerate() {
            for resource in excluded(rule) {
                found.push(format!(
                    "webhooks[{index}].rules[{position}]: {resource} is excluded from admission webhooks; \
                     this rule will have no effect"
                ));
            }
        }
    }
    found
}

fn excluded(rule: &Value) -> Vec<String> {
    let list = |field: &str| items(rule, &[field]).iter().filter_map(Value::as_str);
    let mut found: Vec<String> = Vec::new();
    if list("apiGroups").chain(list("resources")).any(|one| one == "*") {
        return found;
    }
    for group in list("apiGroups") {
        for resource in list("resources").filter(|resource| is_review(group, resource)) {
            let named = format!("{resource}.{group}");
            if !found.contains(&named) {
                found.push(named);
            }
        }
    }
    found
}
