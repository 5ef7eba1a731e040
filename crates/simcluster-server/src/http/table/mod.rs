//! Tables: what `kubectl get` shows.
//!
//! Columns and cells of built-in kinds are known to their rules; columns of custom resources come from
//! the CRD.

mod custom;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use simcluster_model::builtin::{age, columns};
use simcluster_model::object;
use simcluster_model::resource::{Resource, Strategy};

/// Makes the rows of a resource.
#[derive(Debug)]
pub struct Printer {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Custom(custom::Columns),
    BuiltIn(&'static [Value], Arc<dyn Strategy>),
}

impl Printer {
    /// The printer of a resource.
    #[must_use]
    pub fn new(resource: &Resource) -> Self {
        if resource.custom {
            return Self { kind: Kind::Custom(custom::Columns::new(&resource.printer_columns)) };
        }
        let columns = columns(&resource.group, &resource.plural);
        Self { kind: Kind::BuiltIn(columns, Arc::clone(&resource.strategy)) }
    }

    /// `columnDefinitions`; `example` tells Scales from the objects that they scale.
    #[must_use]
    pub fn columns(&self, example: Option<&Value>) -> Value {
        if example.is_some_and(is_scale) {
            return scale_columns();
        }
        match &self.kind {
            Kind::Custom(columns) => columns.definitions(),
            Kind::BuiltIn(columns, _) => json!(columns),
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
            Kind::BuiltIn(_, rules) => {
                let mut row = json!({ "cells": rules.cells(object, now) });
                let conditions = rules.row_conditions(object);
                if !conditions.is_empty() {
                    object::put(&mut row, "conditions", json!(conditions));
                }
                row
            }
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
        json!(object::name(object)),
        count("/spec/replicas"),
        count("/status/replicas"),
        json!(age(object, now)),
    ]
}

/// The column of names.
fn name_column() -> Value {
    columns("", "").first().cloned().unwrap_or_default()
}

/// The column `Age` of custom resources without columns of their own.
fn age_column() -> Value {
    let description = columns("", "").get(1).and_then(|created| created.get("description"));
    json!({ "name": "Age", "type": "date", "format": "", "description": description, "priority": 0 })
}
