//! Two versions of a kind, whose `spec.host` is the other's `spec.address`.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::json;

use super::super::{Writing, apply, record_update};
use super::*;
use crate::resource::Resource;

static KIND: LazyLock<[Resource; 2]> = LazyLock::new(|| {
    let version = |name: &str, field: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                "type": "object",
                "properties": {
                    field: { "type": "string" },
                    "ports": { "type": "object", "additionalProperties": { "type": "integer" } },
                },
            } } } },
        })
    };
    let names = json!({ "plural": "things", "singular": "thing", "kind": "Thing" });
    let crd = json!({
        "spec": {
            "group": "e.com", "scope": "Namespaced", "names": names,
            "versions": [version("v1", "host", true), version("v2", "address", false)],
        },
        "status": {
            "acceptedNames": names,
            "conditions": [
                { "type": "NamesAccepted", "status": "True" },
                { "type": "Established", "status": "True" },
            ],
        },
    });
    crate::crd::resources(&crd).try_into().expect("two versions")
});

/// Converts as a webhook does; knows nothing if it is empty-handed.
struct Renaming {
    known: bool,
}

impl Versions for Renaming {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Versioned, VersionFault> {
        let resource = KIND.iter().find(|one| one.api_version() == api_version);
        let resource = resource.ok_or(VersionFault::Missing)?;
        if !self.known {
            return Err(VersionFault::Unknown);
        }
        let mut object = object.clone();
        let (from, to) =
            if resource.version == "v1" { ("address", "host") } else { ("host", "address") };
        object["apiVersion"] = json!(api_version);
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        Ok(Versioned { object, schema: Arc::clone(&resource.schema) })
    }
}

fn writing<'a>(version: usize, versions: &'a Renaming, manager: &'a str) -> Writing<'a> {
    let now = Timestamp::from_second(1_700_000_000).expect("a time");
    Writing { resource: &KIND[version - 1], versions, manager, subresource: "", now }
}

fn thing(version: usize, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("e.com/v{version}"), "kind": "Thing",
        "metadata": { "name": "a", "uid": "u" }, "spec": spec,
    })
}

/// `manager version = fields`.
fn entries(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| {
        let version = text(entry, "apiVersion").replace("e.com/", "");
        (format!("{} {version}", text(entry, "manager")), entry["fieldsV1"]["f:spec"].clone())
    };
    entries.iter().map(entry).collect()
}

const KNOWN: Renaming = Renaming { known: true };

fn created() -> Value {
    let mut object = thing(2, &json!({ "address": "h", "ports": { "a": 1 } }));
    object["metadata"]["uid"] = json!("");
    record_update(&writing(2, &KNOWN, "two"), None, &mut object);
    object["metadata"]["uid"] = json!("u");
    object
}

fn at_first_version(object: &Value) -> Value {
    KNOWN.convert(object, "e.com/v1").expect("there is one").object
}

#[test]
fn a_field_is_taken_from_who_owns_it_under_another_name() {
    let live = at_first_version(&created());
    let mut new = live.clone();
    new["spec"]["host"] = json!("i");
    record_update(&writing(1, &KNOWN, "one"), Some(&live), &mut new);
    let two = json!({ ".": {}, "f:ports": { ".": {}, "f:a": {} } });
    assert_eq!(
        entries(&new),
        [("one v1".to_owned(), json!({ "f:host": {} })), ("two v2".to_owned(), two)]
    );
}

#[test]
fn what_is_owned_in_a_version_that_is_gone_is_nobodys() {
    let mut live = created();
    live["metadata"]["managedFields"][0]["apiVersion"] = json!("e.com/v0");
    let mut new = live.clone();
    new["spec"]["ports"]["b"] = json!(2);
    record_update(&writing(2, &KNOWN, "two"), Some(&live), &mut new);
    assert_eq!(entries(&new), [("two v2".to_owned(), json!({ "f:ports": { "f:b": {} } }))]);
}

#[test]
fn entries_stay_as_they_are_until_another_version_is_known() {
    let live = at_first_version(&created());
    let mut new = live.clone();
    new["spec"]["host"] = json!("i");
    record_update(&writing(1, &Renaming { known: false }, "one"), Some(&live), &mut new);
    assert_eq!(new["metadata"]["managedFields"], live["metadata"]["managedFields"]);
}

#[test]
fn appliers_conflict_across_versions() {
    let live = at_first_version(&created());
    let config = json!({
        "apiVersion": "e.com/v1", "kind": "Thing", "metadata": { "name": "a" },
        "spec": { "host": "i" },
    });
    let error = apply(&writing(1, &KNOWN, "one"), Some(&live), &config, false).unwrap_err();
    let why = "Apply failed with 1 conflict: conflict with \"two\" using e.com/v2: .spec.address";
    assert_eq!(error.message, why);
    let forced = apply(&writing(1, &KNOWN, "one"), Some(&live), &config, true).unwrap();
    assert_eq!(entries(&forced)[0], ("one v1".to_owned(), json!({ "f:host": {} })));
    assert_eq!(forced["spec"]["host"], json!("i"));
}

#[test]
fn what_was_applied_in_another_version_is_given_up_in_this_one() {
    let config = |version: usize, spec: &Value| {
        json!({
            "apiVersion": format!("e.com/v{version}"), "kind": "Thing",
            "metadata": { "name": "a" }, "spec": spec,
        })
    };
    let first = config(2, &json!({ "address": "h", "ports": { "a": 1, "b": 2 } }));
    let mut live = apply(&writing(2, &KNOWN, "ap"), None, &first, false).unwrap();
    live["metadata"]["uid"] = json!("u");
    let live = at_first_version(&live);
    let second = config(1, &json!({ "ports": { "a": 1 } }));
    let applied = apply(&writing(1, &KNOWN, "ap"), Some(&live), &second, false).unwrap();
    assert_eq!(applied["spec"], json!({ "ports": { "a": 1 } }));
    assert_eq!(applied["apiVersion"], json!("e.com/v1"));
    assert_eq!(entries(&applied), [("ap v1".to_owned(), json!({ "f:ports": { "f:a": {} } }))]);
}
