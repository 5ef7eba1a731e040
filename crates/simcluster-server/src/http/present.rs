//! Objects in the form that the client asked for: as they are, as metadata only, or as a Table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::http::accept::{Form, not_acceptable};
use crate::http::status::is_status;
use crate::http::table::Printer;
use crate::http::texts::TextForm;
use crate::verbs::List;
use simcluster_model::error::ApiError;
use simcluster_model::object::{metadata, metadata_mut, put};
use simcluster_model::resource::Resource;

/// The form in which one response shows its objects.
#[derive(Debug)]
pub struct Presentation {
    form: Form,
    include: Include,
    resource: Arc<Resource>,
    /// Only Tables have one.
    printer: Option<Printer>,
}

impl Presentation {
    /// Objects of a resource in a form; `include` is the query parameter `includeObject`, which only
    /// Tables look at.
    pub fn new(
        form: Form,
        include: Option<&str>,
        resource: &Arc<Resource>,
    ) -> Result<Self, ApiError> {
        let table = matches!(form, Form::Table(_));
        Ok(Self {
            form,
            include: if table { Include::parse(include)? } else { Include::default() },
            resource: Arc::clone(resource),
            printer: table.then(|| Printer::new(resource)),
        })
    }
}

/// `includeObject` of a Table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Include {
    #[default]
    Metadata,
    Object,
    None,
}

impl Include {
    fn parse(value: Option<&str>) -> Result<Self, ApiError> {
        match value.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

impl Presentation {
    /// The form in which events of a type are written the same for all who ask for it; `None` if theirs
    /// depends on more than the object.
    pub(super) fn line_form(&self, kind: &'static str) -> Option<TextForm> {
        match self.form {
            Form::Plain => Some(TextForm::Line(kind, None)),
            Form::Metadata(version) => Some(TextForm::Line(kind, Some(version))),
            Form::MetadataList(_) | Form::Table(_) | Form::Discovery => None,
        }
    }

    /// Whether objects are shown as they are.
    pub(super) fn is_plain(&self) -> bool {
        self.form == Form::Plain
    }

    /// One object. A Status is never turned into something else.
    pub fn object(&self, object: Arc<Value>, now: Timestamp) -> Result<Arc<Value>, ApiError> {
        if is_status(&object) {
            return Ok(object);
        }
        match self.form {
            Form::Plain => Ok(object),
            Form::Metadata(version) => {
                Ok(Arc::new(partial_of(Arc::unwrap_or_clone(object), version)))
            }
            Form::MetadataList(_) if self.resource.custom => {
                Err(ApiError::raw("content is not a list"))
            }
            Form::MetadataList(_) => Err(wrong_form(&format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                go_type(&self.resource, &self.resource.kind)
            ))),
            Form::Table(version) => {
                let list_metadata = match simcluster_model::object::resource_version(&object) {
                    "" => json!({}),
                    version => json!({ "resourceVersion": version }),
                };
                let objects = [Arc::unwrap_or_clone(object)];
                Ok(Arc::new(self.table(version, &list_metadata, &objects, true, now)))
            }
            Form::Discovery => Err(not_acceptable()),
        }
    }

    /// A list.
    pub fn list(&self, list: &List, now: Timestamp) -> Result<Value, ApiError> {
        let version = match self.form {
            Form::Plain => return Ok(list.to_value()),
            Form::Metadata(_) => {
                return Err(wrong_form(&format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({})",
                    go_list_type(&self.resource)
                )));
            }
            Form::MetadataList(version) | Form::Table(version) => version,
            Form::Discovery => return Err(not_acceptable()),
        };
        // Rows show whole objects, with the kind that the items of a list do not repeat.
        let items: Vec<Value> = list.items.iter().map(|stored| list.object(stored)).collect();
        let list_metadata = list_metadata(&list.metadata);
        if let Form::Table(_) = self.form {
            return Ok(self.table(version, &list_metadata, &items, true, now));
        }
        let mut partials = json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": list_metadata,
        });
        // An empty list is a nil slice to the real server, and it prints it as one.
        let shown: Vec<Value> = items.into_iter().map(|it| partial_of(it, version)).collect();
        put(&mut partials, "items", if shown.is_empty() { Value::Null } else { shown.into() });
        Ok(partials)
    }

    /// The object of a watch event; `first` is the first event of the stream, the only one whose Table
    /// names its columns. `None`: the event is lost, as the real server loses it.
    #[must_use]
    pub fn event(&self, object: Value, first: bool, now: Timestamp) -> Option<Value> {
        if is_status(&object) {
            return Some(object);
        }
        match self.form {
            Form::Plain => Some(object),
            Form::Metadata(version) => Some(partial_of(object, version)),
            Form::MetadataList(_) | Form::Discovery => None,
            Form::Table(version) => {
                let list_metadata = json!({ "resourceVersion": simcluster_model::object::resource_version(&object) });
                Some(self.table(version, &list_metadata, &[object], first, now))
            }
        }
    }

    fn table(
        &self,
        version: &str,
        list_metadata: &Value,
        objects: &[Value],
        with_columns: bool,
        now: Timestamp,
    ) -> Value {
        let Some(printer) = &self.printer else { return Value::Null };
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| {
                let mut row = printer.row(object, now);
                put(&mut row, "object", row_object(self.include, object, version));
                row
            })
            .collect();
        let example = if objects.len() == 1 { objects.first() } else { None };
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": list_metadata,
            "columnDefinitions": with_columns.then(|| printer.columns(example)),
            "rows": rows,
        })
    }
}

fn wrong_form(message: &str) -> ApiError {
    ApiError::new(406, "NotAcceptable", message)
}

fn row_object(include: Include, object: &Value, version: &str) -> Value {
    let ends_initial_events = metadata(object)
        .get("annotations")
        .and_then(|annotations| annotations.get("k8s.io/initial-events-end"))
        .is_some();
    match include {
        Include::Object => object.clone(),
        Include::None if !ends_initial_events => Value::Null,
        Include::None | Include::Metadata => partial(metadata(object).clone(), version),
    }
}

/// The metadata of an object that nothing else is asked of.
fn partial_of(mut object: Value, version: &str) -> Value {
    partial(std::mem::take(metadata_mut(&mut object)), version)
}

fn partial(metadata: Map<String, Value>, version: &str) -> Value {
    let mut partial = json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
    });
    put(&mut partial, "metadata", Value::Object(metadata));
    partial
}

/// The metadata of a list without what is empty (custom resources always print `continue`).
fn list_metadata(metadata: &Value) -> Value {
    let kept: Map<String, Value> = metadata
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.as_str() != Some(""))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Value::Object(kept)
}

/// What Go calls the internal type of a list, as 406 texts show it.
fn go_list_type(resource: &Resource) -> String {
    if resource.custom {
        return "*unstructured.UnstructuredList".to_owned();
    }
    go_type(resource, &resource.list_kind)
}

fn go_type(resource: &Resource, kind: &str) -> String {
    let package = match resource.group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        package => package,
    };
    format!("*{package}.{kind}")
}
