//! Tables: what `kubectl get` shows.
//!
//! Columns of built-in kinds are data from a real server (`columns.json`), their cells are computed as
//! `k8s.io/kubernetes/pkg/printers` computes them; columns of custom resources come from the CRD.

mod built_in;
mod custom;
mod format;
mod hpa;
mod network;
mod pod;
mod view;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use simcluster_model::resource::Resource;

pub use self::format::human_duration;

/// Makes the rows of a resource.
#[derive(Debug)]
pub struct Printer {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Custom(custom::Columns),
    BuiltIn(String),
}

/// Columns by `group/plural` (core: `plural`); the empty key has those of kinds without any of their own.
static COLUMNS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("columns.json"))
        .expect("the columns are part of this program and parse")
});

impl Printer {
    /// The printer of a resource.
    #[must_use]
    pub fn new(resource: &Resource) -> Self {
        if resource.custom {
            return Self { kind: Kind::Custom(custom::Columns::new(&resource.printer_columns)) };
        }
        let key = if resource.group.is_empty() {
            resource.plural.clone()
        } else {
            format!("{}/{}", resource.group, resource.plural)
        };
        Self { kind: Kind::BuiltIn(key) }
    }

    /// `columnDefinitions`; `example` tells Scales from the objects that they scale.
    #[must_use]
    pub fn columns(&self, example: Option<&Value>) -> Value {
        if example.is_some_and(is_scale) {
            return scale_columns();
        }
        match &self.kind {
            Kind::Custom(columns) => columns.definitions(),
            Kind::BuiltIn(key) => {
                COLUMNS.get(key).or_else(|| COLUMNS.get("")).cloned().unwrap_or_default()
            }
        }
    }

    /// The row of an object, without the object.
    #[must_use]
    pub fn row(&self, object: &Value, now: Timestamp) -> Value {
        if is_scale(object) {
            return json!({ "cells": scale_cells(object, now) });
        }
        match &self.kind {
            Kind::Custom(columns) => json!({ "cells": columns.cells(object, now) }),
            Kind::BuiltIn(key) if key == "pods" => pod::row(object, now),
            Kind::BuiltIn(key) => json!({ "cells": built_in::cells(key, object, now) }),
        }
    }
}

fn is_scale(object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    text("kind") == Some("Scale") && text("apiVersion") == Some("autoscaling/v1")
}

fn scale_columns() -> Value {
    let count = |name: &str, description: &str| {
        json!({
            "name": name, "type": "integer", "format": "", "description": description, "priority": 0,
        })
    };
    json!([
        name_column(),
        count("Desired", "Number of desired replicas"),
        count("Available", "Number of actual replicas"),
        age_column(),
    ])
}

fn scale_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_else(|| json!(0));
    vec![
        json!(simcluster_model::object::name(object)),
        count("/spec/replicas"),
        count("/status/replicas"),
        json!(format::age(object, now)),
    ]
}

/// The column of names.
fn name_column() -> Value {
    COLUMNS.get("").and_then(|columns| columns.get(0)).cloned().unwrap_or_default()
}

/// The column `Age` of custom resources without columns of their own.
fn age_column() -> Value {
    let created = COLUMNS.get("").and_then(|columns| columns.get(1));
    let description = created.and_then(|column| column.get("description"));
    json!({ "name": "Age", "type": "date", "format": "", "description": description, "priority": 0 })
}
