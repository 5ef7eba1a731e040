//! Requests for certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::builtin::cells::{View, human_duration};
use crate::builtin::check::Faults;
use crate::builtin::kind::Kind;
use crate::builtin::value::{at, int, items, text};
use crate::certificates::{GROUP, REQUESTS, Request, Unverified, certificates};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::names;
use crate::object::{as_map, at_path, child, put, set_path};
use crate::resource::{Resource, Surroundings};
use crate::time::format_seconds;

const CONDITIONS: &str = "status.conditions";

/// What no one but an approver may say.
const VERDICTS: [&str; 2] = ["Approved", "Denied"];

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// `certificatesigningrequests`.
pub(super) static KIND: Kind = Kind {
    name_faults: names::path_segment,
    status_subresource: true,
    allocate_for_create,
    allocate_for_update,
    prepare_for_update,
    validate,
    validate_update: Some(|request, old| change(request, old, Endpoint::Approval)),
    validate_status: |request, old| change(request, old, Endpoint::Status),
    field_labels: &[("spec.signerName", &["spec.signerName"])],
    cells,
    ..Kind::new(GROUP, REQUESTS)
};

/// Through which of its endpoints the status changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Status,
    Approval,
}

/// The PEM text of a request or a certificate.
fn pem(object: &Value, path: &[&str]) -> Vec<u8> {
    STANDARD.decode(text(object, path)).unwrap_or_default()
}

/// A request says who made it, whatever he wrote.
fn allocate_for_create(
    _resource: &Resource,
    request: &mut Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    let asked = Request::parse(&pem(request, &["spec", "request"]));
    if let Ok(asked) = asked
        && let Err(Unverified::Unsupported(what)) = asked.check_signature()
    {
        return Err(ApiError::unsupported(what));
    }
    let requester = (around.requester)();
    let spec = as_map(child(request, "spec"));
    for field in ["username", "uid", "groups", "extra"] {
        match requester.get(field) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "has the form of all kinds' rules")]
fn allocate_for_update(
    _resource: &Resource,
    subresource: &str,
    request: &mut Value,
    old: &Value,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    if subresource == "status" {
        for verdict in VERDICTS {
            keep_conditions(request, old, verdict);
        }
    }
    if !subresource.is_empty() {
        fill_times(request, old, &format_seconds(around.now));
    }
    Ok(())
}

/// Conditions of a type stay as they are, unless there are more or fewer of them.
fn keep_conditions(request: &mut Value, old: &Value, of_type: &str) {
    let known: Vec<Value> = of(old, of_type).cloned().collect();
    if of(request, of_type).count() != known.len() {
        return;
    }
    let conditions = conditions_mut(request).filter(|one| text(one, &["type"]) == of_type);
    conditions.zip(known).for_each(|(condition, known)| *condition = known);
}

/// Conditions say when they were written, and since when they are as they are.
fn fill_times(request: &mut Value, old: &Value, now: &str) {
    for condition in conditions_mut(request) {
        if at(condition, &["lastUpdateTime"]).is_none() {
            put(condition, "lastUpdateTime", json!(now));
        }
        if at(condition, &["lastTransitionTime"]).is_none() {
            let same = |known: &&Value| at(known, &["status"]) == at(condition, &["status"]);
            let since = of(old, text(condition, &["type"]))
                .filter(same)
                .find_map(|known| at(known, &["lastTransitionTime"]).cloned());
            let since = since.unwrap_or_else(|| json!(now));
            put(condition, "lastTransitionTime", since);
        }
    }
}

fn conditions_mut(request: &mut Value) -> impl Iterator<Item = &mut Value> {
    let conditions = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    conditions.into_iter().flatten()
}

fn of<'a>(request: &'a Value, of_type: &str) -> impl Iterator<Item = &'a Value> {
    let conditions = items(request, &["status", "conditions"]).iter();
    conditions.filter(move |condition| text(condition, &["type"]) == of_type)
}

/// A request never changes; approvers write conditions, signers the certificate.
fn prepare_for_update(_resource: &Resource, subresource: &str, request: &mut Value, old: &Value) {
    put(request, "spec", old.get("spec").cloned().unwrap_or_default());
    if subresource == "approval" {
        let conditions = at_path(request, CONDITIONS).cloned();
        put(request, "status", old.get("status").cloned().unwrap_or_else(|| json!({})));
        match conditions {
            Some(conditions) => set_path(request, CONDITIONS, conditions),
            None => {
                as_map(child(request, "status")).remove("conditions");
            }
        }
    }
}

fn validate(request: &Value) -> Vec<FieldError> {
    let mut faults = Faults::default();
    let spec = at(request, &["spec"]).unwrap_or(&Value::Null);
    let checked = Request::parse(&pem(spec, &["request"])).and_then(|asked| {
        match asked.check_signature() {
            Err(Unverified::Wrong(why)) => Err(why),
            // The latter were refused before.
            Ok(()) | Err(Unverified::Unsupported(_)) => Ok(()),
        }
    });
    if let Err(why) = checked {
        let given = at(spec, &["request"]).unwrap_or(&Value::Null);
        faults.invalid("spec.request", given, &why);
    }
    let usages = items(spec, &["usages"]);
    if usages.is_empty() {
        faults.required("spec.usages", "");
    }
    for (index, usage) in usages.iter().enumerate() {
        let usage = usage.as_str().unwrap_or_default();
        faults.supported(format!("spec.usages[{index}]"), usage, &USAGES);
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages.iter().take(index).any(|earlier| earlier == usage) {
            faults.duplicate(format!("spec.usages[{index}]"), usage);
        }
    }
    let signer = text(spec, &["signerName"]);
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        faults.invalid("spec.signerName", &json!(signer), why);
    } else {
        signer_name(signer, &mut faults);
    }
    if let Some(seconds) = int(spec, &["expirationSeconds"]).filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        faults.invalid("spec.expirationSeconds", &json!(seconds), why);
    }
    faults.0
}

/// A domain and a path.
fn signer_name(name: &str, faults: &mut Faults) {
    let field = "spec.signerName";
    if name.is_empty() {
        return faults.required(field, "");
    }
    let (domain, path) = match name.split_once('/') {
        Some((domain, path)) if !path.contains('/') => (domain, path),
        _ => {
            let why = "must be a fully qualified domain and path of the form \
                       'example.com/signer-name'";
            return faults.invalid(field, &json!(name), why);
        }
    };
    if domain.len() > 253 {
        faults.add(FieldError::too_long(field, 253));
    }
    labels(domain, names::dns1123_label, faults);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        faults.invalid(field, &json!(domain), why);
    }
    labels(path, names::dns1123_subdomain, faults);
    // What is left of a name that has to fit into one of an object.
    let longest = 253 * 2 + 1 + 63 + 1;
    if name.len() > longest {
        faults.add(FieldError::too_long(field, longest.try_into().unwrap_or(u64::MAX)));
    }
}

/// The faults of the first part of a dotted name that has some.
fn labels(segment: &str, rule: fn(&str) -> Vec<String>, faults: &mut Faults) {
    let wrong = segment.split('.').map(|label| (label, rule(label)));
    if let Some((label, texts)) = wrong.into_iter().find(|(_, texts)| !texts.is_empty()) {
        for why in texts {
            let why = format!("validating label {label:?}: {why}");
            faults.invalid("spec.signerName", &json!(segment), &why);
        }
    }
}

/// What is wrong with a changed status.
fn change(request: &Value, old: &Value, endpoint: Endpoint) -> Vec<FieldError> {
    let mut faults = Faults::default();
    conditions(request, &mut faults);
    let certificate = |one| at(one, &["status", "certificate"]);
    let is_new = certificate(request) != certificate(old);
    let issued = pem(request, &["status", "certificate"]);
    if is_new
        && !issued.is_empty()
        && let Err(why) = certificates(&issued)
    {
        faults.invalid("status.certificate", &json!("<certificate data>"), &why);
    }
    for kept in ["Approved", "Denied", "Failed"] {
        if of(request, kept).count() < of(old, kept).count() {
            let why = format!("updates may not remove a condition of type {kept:?}");
            faults.forbidden(CONDITIONS, &why);
        }
    }
    for verdict in VERDICTS.iter().filter(|_| endpoint == Endpoint::Status) {
        if of(request, verdict).count() > of(old, verdict).count() {
            let why = format!("updates may not add a condition of type {verdict:?}");
            faults.forbidden(CONDITIONS, &why);
        }
    }
    if is_new && certificate(old).is_some() {
        let why = "updates may not modify existing certificate content";
        faults.forbidden("status.certificate", why);
    }
    one_verdict(request, &mut faults);
    faults.0
}

/// No request is both approved and denied.
fn one_verdict(request: &Value, faults: &mut Faults) {
    if VERDICTS.iter().all(|verdict| of(request, verdict).next().is_some()) {
        let member = |verdict: &str| format!("conditions[{{\"type\": \"{verdict}\"}}]");
        let [approved, denied] = VERDICTS.map(member);
        let why = format!("must specify at most one of: `{approved}`, `{denied}`");
        faults.invalid(CONDITIONS, &json!(format!("{{{approved}, {denied}}}")), &why);
    }
}

fn conditions(request: &Value, faults: &mut Faults) {
    let all = items(request, &["status", "conditions"]);
    for (index, condition) in all.iter().enumerate() {
        let field = format!("{CONDITIONS}[{index}]");
        let of_type = text(condition, &["type"]);
        if of_type.is_empty() {
            faults.required(format!("{field}.type"), "");
        }
        let known: &[&str] = match of_type {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        faults.one_of(format!("{field}.status"), text(condition, &["status"]), known);
        if all.iter().take(index).any(|earlier| text(earlier, &["type"]) == of_type) {
            faults.duplicate(format!("{field}.type"), &json!(of_type));
        }
    }
}

fn cells(view: View<'_>) -> Vec<Value> {
    let has = |of_type: &str| of(view.object, of_type).next().is_some();
    let mut state = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !view.str("/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    let signer = match view.str("/spec/signerName") {
        "" => "<none>",
        name => name,
    };
    let duration = int(view.object, &["spec", "expirationSeconds"]);
    view.named(vec![
        view.age(),
        json!(signer),
        view.text("/spec/username"),
        json!(duration.map_or_else(|| "<none>".to_owned(), human_duration)),
        json!(state),
    ])
}
