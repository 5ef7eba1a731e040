//! What a webhook answers to a review.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::text::{fill, lookup, move_value};

/// What a webhook does with the reviews that it applies to.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// The values, by dotted path, that a review must have; `null` where nothing may be.
    #[serde(rename = "if", skip_serializing_if = "BTreeMap::is_empty")]
    pub wanted: BTreeMap<String, Value>,
    /// The values of which it may have none.
    #[serde(rename = "unless", skip_serializing_if = "BTreeMap::is_empty")]
    pub unwanted: BTreeMap<String, Value>,
    /// Conversion: values that move to another path, in order.
    #[serde(rename = "move", skip_serializing_if = "Map::is_empty")]
    pub moves: Map<String, Value>,
    /// Conversion: a merge patch for each object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Value>,
    /// A merge patch for the plain answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The body instead of all that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The status of the HTTP answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Headers of the HTTP answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Seconds before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Whether the connection is closed without an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hangup: bool,
    /// Whether nobody listens.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refuse: bool,
}

/// The first rule that applies to a review, with saved values in the place of their names; the empty one
/// if none does.
pub(super) fn choose(rules: &[Rule], review: &Value, names: &BTreeMap<String, String>) -> Rule {
    let has = |(path, value): (&String, &Value)| {
        lookup(review, &crate::text::fill_text(path, names)).unwrap_or(&Value::Null)
            == &fill(value, names)
    };
    let applies = |rule: &&Rule| rule.wanted.iter().all(has) && !rule.unwanted.iter().any(has);
    let rule = rules.iter().find(applies).cloned().unwrap_or_default();
    rule.filled(names)
}

impl Rule {
    fn filled(self, names: &BTreeMap<String, String>) -> Self {
        let text = |text: String| crate::text::fill_text(&text, names);
        Self {
            each: self.each.map(|each| fill(&each, names)),
            answer: self.answer.map(|answer| fill(&answer, names)),
            text: self.text.map(text),
            headers: self.headers.into_iter().map(|(name, value)| (name, text(value))).collect(),
            ..self
        }
    }

    /// The body of the answer to a review.
    pub(super) fn body(&self, review: &Value) -> String {
        self.text.clone().unwrap_or_else(|| self.review(review).to_string())
    }

    /// The plain answer, merged with the rule's own.
    fn review(&self, review: &Value) -> Value {
        let part = |path| review.pointer(path).cloned().unwrap_or_default();
        let mut response = json!({ "uid": part("/request/uid") });
        if part("/kind") == "ConversionReview" {
            let version = part("/request/desiredAPIVersion");
            let objects = part("/request/objects");
            let objects = objects.as_array().into_iter().flatten();
            let converted: Vec<Value> =
                objects.map(|object| self.convert(object.clone(), &version)).collect();
            response = json!({
                "uid": part("/request/uid"), "result": { "status": "Success" },
                "convertedObjects": converted,
            });
        } else if let Some(response) = response.as_object_mut() {
            response.insert("allowed".to_owned(), true.into());
        }
        let mut answer = json!({
            "apiVersion": part("/apiVersion"), "kind": part("/kind"), "response": response,
        });
        let Some(changes) = &self.answer else { return answer };
        json_patch::merge(&mut answer, changes);
        encode_patch(&mut answer, changes);
        answer
    }

    /// One object at the version that is asked for: fields moved, then `each` merged into it.
    fn convert(&self, mut object: Value, version: &Value) -> Value {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".to_owned(), version.clone());
        }
        for (from, to) in &self.moves {
            move_value(&mut object, from, to.as_str().unwrap_or_default());
        }
        if let Some(each) = &self.each {
            json_patch::merge(&mut object, each);
        }
        object
    }
}

/// A patch is sent in base64, and as a JSON patch unless the rule says otherwise.
fn encode_patch(answer: &mut Value, changes: &Value) {
    let Some(patch) = changes.pointer("/response/patch").filter(|patch| !patch.is_null()) else {
        return;
    };
    let text = patch.as_str().map_or_else(|| patch.to_string(), str::to_owned);
    let Some(response) = answer.get_mut("response").and_then(Value::as_object_mut) else { return };
    response.insert("patch".to_owned(), STANDARD.encode(text).into());
    if changes.pointer("/response/patchType").is_none() {
        response.insert("patchType".to_owned(), "JSONPatch".into());
    }
}
