//! Bodies: objects, patches, scales.

use serde_json::{Value, json};

use super::Maker;
use super::odd::{bare_yaml, broken, spoil, with_duplicate};
use crate::case::Step;
use crate::text::put;

/// Values that metadata can have, by dotted path.
const METADATA: [(&str, &str); 14] = [
    (
        "labels",
        r#"[{}, {"app": "a"}, {"app": "a", "tier": "x"}, {"app": "b"}, null, {"a b": "x"}, {"app": "a b"}, {"app": null}]"#,
    ),
    ("annotations", r#"[{}, {"a": "b"}, {"a": "c", "b": ""}, null, {"a b": "x"}, {"a": null}]"#),
    (
        "finalizers",
        r#"[[], ["x.y/z"], ["x.y/z", "x.y/w"], ["x"], ["x.y/z", "x.y/z"], ["foregroundDeletion"], ["orphan"], null, ["kubernetes"]]"#,
    ),
    (
        "ownerReferences",
        r#"[[], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": true, "blockOwnerDeletion": true}], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}], [{"apiVersion": "v1", "kind": "A", "name": "o", "uid": "u", "controller": true}, {"apiVersion": "v1", "kind": "B", "name": "p", "uid": "v", "controller": true}], [{"apiVersion": "v1", "kind": "A", "name": "o", "uid": "u"}, {"apiVersion": "v1", "kind": "A", "name": "p", "uid": "u"}], null]"#,
    ),
    (
        "managedFields",
        r#"[[], [{}], null, [{"manager": "m9", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}], [{"manager": "m9", "operation": "x"}]]"#,
    ),
    ("resourceVersion", r#"["", "1", "x", "999999999", null]"#),
    ("uid", r#"["", "x", "00000000-0000-4000-8000-000000000000"]"#),
    ("generation", r"[0, 7, null]"),
    ("creationTimestamp", r#"[null, "2020-01-01T00:00:00Z", "x"]"#),
    ("deletionTimestamp", r#"["2020-01-01T00:00:00Z", null]"#),
    ("deletionGracePeriodSeconds", r"[5]"),
    ("generateName", r#"["g-", ""]"#),
    ("selfLink", r#"["/x"]"#),
    ("namespace", r#"["default", "", null, "{ns}"]"#),
];
/// How often labels and annotations are chosen, in percent, and how often anything else is.
const COMMON: [usize; 2] = [30, 6];

impl Maker {
    /// An object for a create, an update or an apply.
    pub(super) fn object(&mut self, name: &str) -> Value {
        let resource = self.resource;
        let version = self.version();
        let mut object = json!({
            "apiVersion": resource.api_version(&version), "kind": resource.kind,
            "metadata": { "name": name },
        });
        if let Value::Object(object) = &mut object {
            object.extend(resource.base.clone());
            if name.is_empty() {
                object.insert("metadata".to_owned(), json!({}));
            }
        }
        self.fill(&mut object, "");
        if self.dice.chance(4) {
            let path = self.dice.text(&["metadata.name", "kind", "apiVersion", "metadata"]);
            let values =
                [json!(null), json!(""), json!("x"), json!({}), json!([]), json!("b"), json!("v1")];
            put(&mut object, &path, self.dice.pick(&values).clone());
        }
        object
    }

    /// The part of an object that a merge patch has.
    pub(super) fn partial(&mut self, subresource: &str) -> Value {
        if subresource == "scale" {
            return self.partial_scale();
        }
        let mut patch = json!({});
        self.fill(&mut patch, subresource);
        patch
    }

    /// A merge patch with the directives of strategic merge patches, sometimes.
    pub(super) fn strategic(&mut self, subresource: &str) -> Value {
        let mut patch = self.partial(subresource);
        if self.dice.chance(40) {
            let directives = [
                ("$patch", json!("replace")),
                ("$patch", json!("delete")),
                ("$patch", json!("x")),
                ("metadata.$patch", json!("replace")),
                ("metadata.labels.$patch", json!("replace")),
                ("data.$patch", json!("replace")),
                ("metadata.$setElementOrder/finalizers", json!(["x.y/w", "x.y/z"])),
                ("metadata.$deleteFromPrimitiveList/finalizers", json!(["x.y/z"])),
                ("metadata.$retainKeys", json!(["name", "labels"])),
                ("spec.ports", json!([{ "port": 80, "$patch": "delete" }])),
                ("spec.ports", json!([{ "$patch": "replace" }, { "port": 82 }])),
                ("spec.$setElementOrder/ports", json!([{ "port": 81 }, { "port": 80 }])),
                ("spec.strategy.$retainKeys", json!(["type"])),
                ("spec.template.spec.containers", json!([{ "name": "c", "$patch": "delete" }])),
                ("spec.template.spec.containers", json!([{ "name": "d", "image": "i" }])),
                ("secrets", json!([{ "name": "a", "$patch": "delete" }])),
            ];
            let (path, value) = self.dice.pick(&directives).clone();
            put(&mut patch, path, value);
        }
        patch
    }

    /// Puts values into some fields.
    fn fill(&mut self, object: &mut Value, subresource: &str) {
        let fields: Vec<(&String, &Vec<Value>)> = self.resource.fields.iter().collect();
        let count = [0, 1, 1, 2, 2, 3, 4].get(self.dice.below(7)).copied().unwrap_or_default();
        let count = if fields.is_empty() { 0 } else { count };
        for _ in 0..count {
            let (mut path, mut values) = *self.dice.pick(&fields);
            // A subresource is about its own fields, mostly.
            for _ in 0..6 {
                if subresource.is_empty() || path.starts_with(subresource) || self.dice.chance(10) {
                    break;
                }
                (path, values) = *self.dice.pick(&fields);
            }
            put(object, path, self.dice.pick(values).clone());
        }
        for (field, values) in METADATA {
            let common = matches!(field, "labels" | "annotations");
            let [often, seldom] = COMMON;
            if !self.dice.chance(if common { often } else { seldom }) {
                continue;
            }
            let values: Vec<Value> =
                serde_json::from_str(values).expect("the values above are JSON");
            let mut value = self.dice.pick(&values).clone();
            if field == "resourceVersion" && self.dice.chance(60) {
                value = self.seen_version().into();
            }
            put(object, &format!("metadata.{field}"), value);
        }
    }

    /// A Scale.
    pub(super) fn scale(&mut self, name: &str) -> Value {
        let mut scale = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": { "name": name }, "spec": { "replicas": self.dice.below(5) },
        });
        if self.dice.chance(30) {
            let odd = [
                ("spec", json!({})),
                ("spec", json!(null)),
                ("spec.replicas", json!(-1)),
                ("spec.replicas", json!(2.0)),
                ("spec.replicas", json!("2")),
                ("spec.replicas", json!(null)),
                ("spec.replicas", json!(200)),
                ("status.replicas", json!(5)),
                ("status.selector", json!("x=y")),
                ("metadata.resourceVersion", json!("1")),
                ("metadata.uid", json!("x")),
                ("metadata.labels", json!({ "a": "b" })),
                ("metadata.name", json!("x")),
                ("metadata", json!({})),
                ("apiVersion", json!("autoscaling/v2")),
                ("apiVersion", json!("extensions/v1beta1")),
                ("kind", json!("x")),
                ("extra", json!(1)),
            ];
            let (path, value) = self.dice.pick(&odd).clone();
            put(&mut scale, path, value);
        }
        scale
    }

    fn partial_scale(&mut self) -> Value {
        let mut scale = self.scale("a");
        if let Value::Object(scale) = &mut scale {
            scale.retain(|key, _| key == "spec" || self.dice.chance(15));
        }
        scale
    }

    /// A JSON patch of up to four operations.
    pub(super) fn json_patch(&mut self, subresource: &str) -> Value {
        let count = 1 + self.dice.below(4);
        (0..count).map(|_| self.operation(subresource)).collect()
    }

    fn operation(&mut self, subresource: &str) -> Value {
        let (path, value) = self.place(subresource);
        let op = self
            .dice
            .text(&["add", "add", "add", "replace", "replace", "remove", "test", "move", "copy"]);
        let mut operation = json!({ "op": op, "path": path });
        let (from, _) = self.place(subresource);
        let Value::Object(fields) = &mut operation else { return operation };
        match op.as_str() {
            "remove" => {}
            "move" | "copy" => drop(fields.insert("from".to_owned(), from.into())),
            _ => drop(fields.insert("value".to_owned(), value)),
        }
        if self.dice.chance(4) {
            spoil(&mut operation, &mut self.dice);
        }
        operation
    }

    /// A pointer and a value for what is there.
    fn place(&mut self, subresource: &str) -> (String, Value) {
        if subresource == "scale" {
            let places =
                ["/spec/replicas", "/spec", "/status/replicas", "/kind", "/metadata/labels", "/x"];
            return (self.dice.text(&places), json!(self.dice.below(4)));
        }
        let fixed = [
            ("/metadata/labels/app", json!("b")),
            ("/metadata/labels", json!({ "app": "a" })),
            ("/metadata/annotations", json!({})),
            ("/metadata/annotations/a~1b", json!("c")),
            ("/metadata/finalizers/-", json!("x.y/z")),
            ("/metadata/finalizers", json!([])),
            ("/metadata/finalizers/0", json!("x.y/w")),
            ("/metadata/name", json!("b")),
            ("/metadata/resourceVersion", json!("1")),
            ("/metadata/managedFields", json!([])),
            ("/kind", json!("x")),
            ("/apiVersion", json!("v2")),
            ("/metadata", json!({})),
            ("", json!({})),
            ("/x", json!(1)),
            ("x", json!(1)),
        ];
        if self.dice.chance(35) {
            let (path, value) = self.dice.pick(&fixed).clone();
            return (path.to_owned(), value);
        }
        let fields: Vec<(&String, &Vec<Value>)> = self.resource.fields.iter().collect();
        let (path, values) = *self.dice.pick(&fields);
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = self.dice.pick(values).clone();
        // Into what is there, sometimes.
        match &value {
            Value::Array(items) if self.dice.chance(40) => {
                let index = self.dice.text(&["-", "0", "1", "7", "-1", "01"]);
                (format!("{pointer}/{index}"), items.first().cloned().unwrap_or_default())
            }
            Value::Object(map) if self.dice.chance(40) => match map.iter().next() {
                Some((key, value)) => {
                    (format!("{pointer}/{}", key.replace('/', "~1")), value.clone())
                }
                None => (pointer, value),
            },
            Value::Array(_)
            | Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => (pointer, value),
        }
    }

    /// Puts a JSON body on a step: as it is, spoilt, or as a text that is hardly one.
    pub(super) fn send(&mut self, step: &mut Step, body: &Value) {
        let mut body = body.clone();
        self.spoil_sometimes(&mut body);
        match self.dice.below(100) {
            0..92 => step.body = Some(body),
            92..96 => step.text = Some(with_duplicate(&body, &mut self.dice)),
            96..98 => step.text = Some(broken(&body, &mut self.dice)),
            _ if step.headers.contains_key("Content-Type") => step.body = Some(body),
            _ => {
                let types = [
                    "application/yaml",
                    "application/yaml",
                    "text/plain",
                    "application/x",
                    "application/json; charset=utf-8",
                    "application/merge-patch+json",
                ];
                let kind = self.dice.text(&types);
                step.headers.insert("Content-Type".to_owned(), kind.clone());
                if kind == "application/yaml" {
                    step.text = Some(bare_yaml(&body, &mut self.dice));
                } else {
                    step.body = Some(body);
                }
            }
        }
        if step.text.is_some() {
            step.headers
                .entry("Content-Type".to_owned())
                .or_insert_with(|| "application/json".to_owned());
        }
    }

    /// Puts the body of an apply on a step.
    pub(super) fn send_yaml(&mut self, step: &mut Step, body: &Value) {
        let mut body = body.clone();
        self.spoil_sometimes(&mut body);
        match self.dice.below(100) {
            0..82 => step.body = Some(body),
            82..94 => step.text = Some(bare_yaml(&body, &mut self.dice)),
            94..98 => step.text = Some(with_duplicate(&body, &mut self.dice)),
            _ => step.text = Some(broken(&body, &mut self.dice)),
        }
    }

    fn spoil_sometimes(&mut self, body: &mut Value) {
        let times = match self.dice.below(10) {
            0 | 1 => 1,
            2 => 2,
            _ => 0,
        };
        for _ in 0..times {
            spoil(body, &mut self.dice);
        }
    }
}
