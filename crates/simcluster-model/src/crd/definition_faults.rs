//! Faults of definitions (`apiextensions-apiserver`, `pkg/apis/apiextensions/validation`).
//!
//! The server validates an internal form: what all versions have in common (schema, subresources,
//! printer columns, selectable fields) stands once at the top of the spec there, and paths and printed
//! values show that.

use serde_json::{Value, json};

use super::approval::approval_fault;
use super::{bundle, go_form, is_established, list, schema_faults, selectable, text, texts};
use crate::field::FieldError;
use crate::names::{dns1035_label, dns1123_subdomain};
use crate::object::at_path;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What all versions have in common.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Common<'a> {
    pub(super) schema: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a Value>,
    pub(super) selectable: Option<&'a Value>,
}

impl<'a> Common<'a> {
    fn of(spec: &'a Value) -> Self {
        let shared = |key: &str| {
            let mut found = list(spec, "versions").map(|version| set(version, key));
            let first = found.next().flatten()?;
            found.all(|other| other == Some(first)).then_some(first)
        };
        Self {
            schema: shared("schema"),
            subresources: shared("subresources"),
            columns: shared("additionalPrinterColumns"),
            selectable: shared("selectableFields"),
        }
    }
}

/// A field that is neither missing nor empty.
fn set<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|found| !found.is_null() && !found.as_array().is_some_and(Vec::is_empty))
}

/// All faults of a definition, beside those of its metadata.
pub(super) fn all(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let nothing = Value::Null;
    let spec = crd.get("spec").unwrap_or(&nothing);
    let old_spec = old.and_then(|old| old.get("spec"));
    let mut faults = spec_faults(spec, old);
    if let (Some(old), Some(old_spec)) = (old, old_spec) {
        let always = ["group", "names.plural"];
        let established = ["scope", "names.kind"];
        let fields = established.iter().filter(|_| is_established(old)).chain(&always);
        for field in fields {
            let (new, before) = (at_path(spec, field), at_path(old_spec, field));
            if new != before {
                let value = new.cloned().unwrap_or_else(|| json!(""));
                let field = format!("spec.{field}");
                faults.push(FieldError::invalid(field, &value, "field is immutable"));
            }
        }
    }
    let accepted = at_path(crd, "status.acceptedNames").unwrap_or(&nothing);
    faults.extend(names(accepted, "status.acceptedNames"));
    faults.extend(stored_version_faults(crd, spec));
    faults.extend(approval_fault(crd, old));
    let preserves = spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(true);
    if preserves {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        faults.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    faults
}

fn spec_faults(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut faults = group_and_scope_faults(spec);
    let common = Common::of(spec);
    let has_schema = |holder: Option<&Value>| {
        holder.is_some_and(|schema| set(schema, "openAPIV3Schema").is_some())
    };
    if !has_schema(common.schema) {
        for (index, version) in list(spec, "versions").enumerate() {
            let own = set(version, "schema").filter(|_| common.schema.is_none());
            if !has_schema(own) {
                let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
                faults.push(FieldError::required(field, ""));
            }
        }
    }
    for (index, version) in list(spec, "versions").enumerate() {
        version_faults(version, &format!("spec.versions[{index}]"), common, &mut faults);
    }
    version_list_faults(spec, common, &mut faults);
    let names_of_spec = spec.get("names").unwrap_or(&Value::Null);
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(names_of_spec, key).is_empty() {
            faults.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    faults.extend(names(names_of_spec, "spec.names"));
    let any_status =
        list(spec, "versions").any(|version| at_path(version, "subresources.status").is_some());
    if let Some(schema) = common.schema.and_then(|holder| set(holder, "openAPIV3Schema")) {
        let field = "spec.validation.openAPIV3Schema";
        faults.extend(schema_faults::all(schema, field, any_status));
    }
    if let Some(subresources) = common.subresources {
        subresource_faults(subresources, "spec.subresources", &mut faults);
    }
    for (index, column) in items(common.columns).enumerate() {
        column_faults(column, &format!("spec.additionalPrinterColumns[{index}]"), &mut faults);
    }
    if let Some(fields) = common.selectable {
        match common.schema.and_then(|holder| set(holder, "openAPIV3Schema")) {
            Some(schema) => {
                faults.extend(selectable::faults(fields, schema, "spec.selectableFields"));
            }
            None => faults.push(FieldError::invalid(
                "spec.selectableFields",
                &json!(""),
                "may only be set when validations.schema is included",
            )),
        }
    }
    conversion_faults(spec, old, &mut faults);
    faults
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

fn group_and_scope_faults(spec: &Value) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let group = text(spec, "group");
    let wrong = dns1123_subdomain(&group);
    if group.is_empty() {
        faults.push(FieldError::required("spec.group", ""));
    } else if !wrong.is_empty() {
        faults.push(FieldError::invalid("spec.group", &json!(group), &wrong.join(",")));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        faults.push(FieldError::invalid("spec.group", &json!(group), why));
    }
    let scopes = ["Cluster", "Namespaced"];
    faults.extend(choice_fault("spec.scope", &text(spec, "scope"), &scopes));
    faults
}

fn choice_fault(field: &str, value: &str, choices: &[&str]) -> Option<FieldError> {
    if value.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    if choices.contains(&value) {
        return None;
    }
    let choices: Vec<String> = choices.iter().map(|one| (*one).to_owned()).collect();
    Some(FieldError::not_supported(field, &json!(value), &choices))
}

fn version_faults(version: &Value, path: &str, common: Common<'_>, faults: &mut Vec<FieldError>) {
    let name = text(version, "name");
    let wrong = dns1035_label(&name);
    if !wrong.is_empty() {
        let field = format!("{path}.name");
        faults.push(FieldError::invalid(field, &json!(name), &wrong.join(",")));
    }
    deprecation_faults(version, path, faults);
    let own = |shared: Option<&Value>, key: &str| set(version, key).filter(|_| shared.is_none());
    let schema = own(common.schema, "schema").and_then(|holder| set(holder, "openAPIV3Schema"));
    let subresources = set(version, "subresources");
    let status = subresources.is_some_and(|found| set(found, "status").is_some());
    if let Some(schema) = schema {
        let field = format!("{path}.schema.openAPIV3Schema");
        faults.extend(schema_faults::all(schema, &field, status));
    }
    if let Some(subresources) = own(common.subresources, "subresources") {
        subresource_faults(subresources, &format!("{path}.subresources"), faults);
    }
    for (index, column) in items(own(common.columns, "additionalPrinterColumns")).enumerate() {
        column_faults(column, &format!("{path}.additionalPrinterColumns[{index}]"), faults);
    }
    if let Some(fields) = own(common.selectable, "selectableFields") {
        let field = format!("{path}.selectableFields");
        match schema {
            Some(schema) => faults.extend(selectable::faults(fields, schema, &field)),
            None => faults.push(FieldError::invalid(
                field,
                &json!(""),
                "may only be set when `version.schema.openAPIV3Schema` is not included",
            )),
        }
    }
}

fn deprecation_faults(version: &Value, path: &str, faults: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut wrong = Vec::new();
    if version.get("deprecated").and_then(Value::as_bool) == Some(true) {
        if warning.len() > 256 {
            wrong.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, char)| char.is_control()) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at \
                 index {index}"
            ));
        }
    } else {
        wrong.push("can only be set for deprecated versions".to_owned());
    }
    let field = format!("{path}.deprecationWarning");
    // In Go it is a pointer, and printed as JSON therefore.
    let shown = json!(warning).to_string();
    faults.extend(wrong.iter().map(|why| FieldError::invalid_shown(&*field, &shown, why)));
}

fn version_list_faults(spec: &Value, common: Common<'_>, faults: &mut Vec<FieldError>) {
    let all: Vec<&Value> = list(spec, "versions").collect();
    let names: Vec<String> = all.iter().map(|version| text(version, "name")).collect();
    let printed = || go_form::versions(&all, common);
    let repeated = names
        .iter()
        .enumerate()
        .any(|(index, name)| names.iter().take(index).any(|earlier| earlier == name));
    if repeated {
        let why = "must contain unique version names";
        faults.push(go_form::invalid("spec.versions", &printed(), why));
    }
    let storage = |version: &&&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    if all.iter().filter(storage).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        faults.push(go_form::invalid("spec.versions", &printed(), why));
    }
    if let Some(first) = names.first() {
        let wrong = dns1035_label(first);
        if !first.is_empty() && !wrong.is_empty() {
            faults.push(FieldError::invalid("spec.version", &json!(first), &wrong.join(",")));
        }
    }
}

/// Faults of the names of a spec or a status.
pub(super) fn names(names: &Value, path: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (key, mixed_case) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        let name = text(names, key);
        let wrong =
            if mixed_case { dns1035_label(&name.to_lowercase()) } else { dns1035_label(&name) };
        if !name.is_empty() && !wrong.is_empty() {
            let prefix =
                if mixed_case { "may have mixed case, but should otherwise match: " } else { "" };
            let why = format!("{prefix}{}", wrong.join(","));
            faults.push(FieldError::invalid(format!("{path}.{key}"), &json!(name), &why));
        }
    }
    let labels = |key: &str, faults: &mut Vec<FieldError>| {
        for (index, name) in texts(names, key).iter().enumerate() {
            let wrong = dns1035_label(name);
            if !wrong.is_empty() {
                let field = format!("{path}.{key}[{index}]");
                faults.push(FieldError::invalid(field, &json!(name), &wrong.join(",")));
            }
        }
    };
    labels("shortNames", &mut faults);
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let why = "kind and listKind may not be the same";
        faults.push(FieldError::invalid(format!("{path}.listKind"), &json!(kind), why));
    }
    labels("categories", &mut faults);
    faults
}

fn subresource_faults(subresources: &Value, path: &str, faults: &mut Vec<FieldError>) {
    let Some(scale) = set(subresources, "scale") else { return };
    for (key, roots, why) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."][..], "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let field = format!("{path}.scale.{key}");
        let json_path = text(scale, key);
        if json_path.is_empty() {
            if key != "labelSelectorPath" {
                faults.push(FieldError::required(field, ""));
            }
        } else if let Some(fault) = json_path_fault(&json_path, &field) {
            faults.push(fault);
        } else if !roots.iter().any(|root| json_path.starts_with(root)) {
            faults.push(FieldError::invalid(field, &json!(json_path), why));
        }
    }
}

fn json_path_fault(json_path: &str, field: &str) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!json_path.starts_with('.')).then(|| FieldError::invalid(field, &json!(json_path), why))
}

fn column_faults(column: &Value, path: &str, faults: &mut Vec<FieldError>) {
    if text(column, "name").is_empty() {
        faults.push(FieldError::required(format!("{path}.name"), ""));
    }
    let kind = text(column, "type");
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        faults.push(FieldError::required(format!("{path}.type"), &types));
    } else if !COLUMN_TYPES.contains(&kind.as_str()) {
        faults.push(FieldError::invalid(format!("{path}.type"), &json!(kind), &types));
    }
    let format_name = text(column, "format");
    if !format_name.is_empty() && !COLUMN_FORMATS.contains(&format_name.as_str()) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        faults.push(FieldError::invalid(format!("{path}.format"), &json!(format_name), &why));
    }
    let json_path = text(column, "jsonPath");
    let field = format!("{path}.JSONPath");
    if json_path.is_empty() {
        faults.push(FieldError::required(field, ""));
    } else {
        faults.extend(json_path_fault(&json_path, &field));
    }
}

fn conversion_faults(spec: &Value, old: Option<&Value>, faults: &mut Vec<FieldError>) {
    const PATH: &str = "spec.conversion";
    let Some(conversion) = set(spec, "conversion") else { return };
    let strategy = text(conversion, "strategy");
    let strategies = ["None", "Webhook"];
    faults.extend(choice_fault(&format!("{PATH}.strategy"), &strategy, &strategies));
    let config_field = format!("{PATH}.webhookClientConfig");
    let versions_field = format!("{PATH}.conversionReviewVersions");
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    let config = set(webhook, "clientConfig");
    let versions = texts(webhook, "conversionReviewVersions");
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            faults.push(FieldError::forbidden(config_field, why));
        }
        if !versions.is_empty() {
            faults.push(FieldError::forbidden(versions_field, why));
        }
        return;
    }
    match config {
        None => {
            let why = "required when strategy is set to Webhook";
            faults.push(FieldError::required(config_field, why));
        }
        Some(config) => client_config_faults(config, &config_field, old, faults),
    }
    review_version_faults(&versions, &versions_field, faults);
}

fn client_config_faults(
    config: &Value,
    path: &str,
    old: Option<&Value>,
    faults: &mut Vec<FieldError>,
) {
    let (url, service) = (set(config, "url"), set(config, "service"));
    match (url.and_then(Value::as_str), service) {
        (None, None) | (Some(_), Some(_)) => {
            faults.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => bundle::url_faults(url, &format!("{path}.url"), faults),
        (None, Some(service)) => {
            bundle::service_faults(service, &format!("{path}.service"), faults);
        }
    }
    let given = text(config, "caBundle");
    // A bundle that cannot be used is accepted until the definition is established, or if the old one
    // was no better.
    let strict = old.is_some_and(|old| {
        let before = at_path(old, "spec.conversion.webhook.clientConfig")
            .map(|config| text(config, "caBundle"))
            .unwrap_or_default();
        is_established(old) && bundle::fault(&before).is_none()
    });
    if strict && let Some(why) = bundle::fault(&given) {
        faults.push(FieldError::invalid(format!("{path}.caBundle"), &json!(given), why));
    }
}

fn review_version_faults(versions: &[String], path: &str, faults: &mut Vec<FieldError>) {
    if versions.is_empty() {
        faults.push(FieldError::required(path, ""));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if versions.iter().take(index).any(|earlier| earlier == version) {
            faults.push(FieldError::invalid(field, &json!(version), "duplicate version"));
            continue;
        }
        for why in dns1035_label(version) {
            faults.push(FieldError::invalid(&*field, &json!(version), &why));
        }
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let why = "must include at least one of v1, v1beta1";
        faults.push(FieldError::invalid(path, &json!(versions), why));
    }
}

fn stored_version_faults(crd: &Value, spec: &Value) -> Vec<FieldError> {
    const PATH: &str = "status.storedVersions";
    let stored = at_path(crd, "status").map(|status| texts(status, "storedVersions"));
    let stored = stored.unwrap_or_default();
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(PATH, &Value::Null, why)];
    }
    let mut faults = Vec::new();
    let mut known = Vec::new();
    for version in list(spec, "versions") {
        let name = text(version, "name");
        let storage = version.get("storage").and_then(Value::as_bool) == Some(true);
        if storage && (!stored.contains(&name) || known.contains(&name)) {
            let why = format!("must have the storage version {name}");
            faults.push(FieldError::invalid(PATH, &json!(stored), &why));
        }
        known.push(name);
    }
    for (index, name) in stored.iter().enumerate().filter(|(_, name)| !known.contains(name)) {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain \
             in spec.versions until a storage migration ensures no data remains persisted in {name} \
             and removes {name} from status.storedVersions"
        );
        faults.push(FieldError::invalid(format!("{PATH}[{index}]"), &json!(name), &why));
    }
    faults
}
