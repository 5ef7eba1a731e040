//! `metadata.managedFields`: who wrote which fields, when, and how.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::FieldSet;
use crate::golang;

/// Update entries beyond this number are merged, oldest first.
const UPDATE_MANAGERS_MAX: usize = 10;

/// The manager that the oldest Update entries are merged in.
const BUCKET: &str = "ancient-changes";

/// What `operation` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who an entry belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writer {
    /// The field manager.
    pub(super) manager: String,
    /// How it writes.
    pub(super) operation: Operation,
    /// The version in which it writes. Does not tell appliers apart.
    pub(super) api_version: String,
    /// The subresource through which it writes; empty for the main endpoint.
    pub(super) subresource: String,
}

impl Writer {
    /// The text by which the server tells writers apart, and sorts them.
    pub(super) fn identity(&self) -> String {
        let mut out = format!(
            "{{\"manager\":{},\"operation\":\"{}\"",
            Value::from(self.manager.as_str()),
            self.operation.name()
        );
        if self.operation == Operation::Update {
            out.push_str(",\"apiVersion\":");
            out.push_str(&Value::from(self.api_version.as_str()).to_string());
        }
        if !self.subresource.is_empty() {
            out.push_str(",\"subresource\":");
            out.push_str(&Value::from(self.subresource.as_str()).to_string());
        }
        out.push('}');
        out
    }

    /// The writer as conflicts name it.
    pub(super) fn shown(&self) -> String {
        let mut out = golang::quote(&self.manager);
        if !self.subresource.is_empty() {
            out.push_str(" with subresource ");
            out.push_str(&golang::quote(&self.subresource));
        }
        if self.operation == Operation::Update {
            out.push_str(" using ");
            out.push_str(&self.api_version);
        }
        out
    }
}

/// What one writer owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Who.
    pub(super) writer: Writer,
    /// What.
    pub(super) fields: FieldSet,
    /// Since when; `None` if the writer never changed a value.
    pub(super) time: Option<String>,
}

/// All entries of an object, by the identity of their writers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Managed(BTreeMap<String, Entry>);

impl Managed {
    /// Reads `metadata.managedFields`. Of entries of the same writer the last one counts.
    pub(super) fn decode(entries: &[Value]) -> Result<Self, String> {
        let mut managed = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            managed.put(decode_entry(index, entry)?);
        }
        Ok(managed)
    }

    /// Whether there are no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries in the order of their writers' identities.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.0.iter()
    }

    /// The entry of a writer.
    pub(super) fn get(&self, identity: &str) -> Option<&Entry> {
        self.0.get(identity)
    }

    /// The entry of a writer, to change.
    pub(super) fn get_mut(&mut self, identity: &str) -> Option<&mut Entry> {
        self.0.get_mut(identity)
    }

    /// All entries, to change.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = (&String, &mut Entry)> {
        self.0.iter_mut()
    }

    /// Sets the entry of a writer.
    pub(super) fn put(&mut self, entry: Entry) {
        self.0.insert(entry.writer.identity(), entry);
    }

    /// Takes the entry of a writer out.
    pub(super) fn remove(&mut self, identity: &str) -> Option<Entry> {
        self.0.remove(identity)
    }

    /// The versions of the entries, but for one.
    pub(super) fn other_versions(&self, version: &str) -> BTreeSet<String> {
        let versions = self.0.values().map(|entry| &entry.writer.api_version);
        versions.filter(|other| *other != version).cloned().collect()
    }

    /// Drops the entries of a version.
    pub(super) fn drop_version(&mut self, version: &str) {
        self.0.retain(|_, entry| entry.writer.api_version != version);
    }

    /// Drops entries that own nothing.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Merges the oldest Update entries, version by version, until few enough are left.
    pub(super) fn cap_updates(&mut self) {
        let mut updates: Vec<(i64, String)> = self
            .0
            .iter()
            .filter(|(_, entry)| entry.writer.operation == Operation::Update)
            .map(|(identity, entry)| (seconds(entry.time.as_deref()), identity.clone()))
            .collect();
        let mut left = updates.len();
        if left <= UPDATE_MANAGERS_MAX {
            return;
        }
        updates.sort();
        let mut first_of_version: BTreeMap<String, String> = BTreeMap::new();
        for (_, identity) in updates {
            if left <= UPDATE_MANAGERS_MAX {
                return;
            }
            let Some(version) = self.get(&identity).map(|entry| entry.writer.api_version.clone())
            else {
                continue;
            };
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, identity);
                continue;
            };
            self.move_to_bucket(&first.clone(), &identity, version);
            left -= 1;
        }
    }

    fn move_to_bucket(&mut self, first: &str, identity: &str, api_version: String) {
        let writer = Writer {
            manager: BUCKET.to_owned(),
            operation: Operation::Update,
            api_version,
            subresource: String::new(),
        };
        let bucket = writer.identity();
        let base = if self.0.contains_key(&bucket) { bucket } else { first.to_owned() };
        let Some(newer) = self.remove(identity) else { return };
        let mut fields = self.remove(&base).map(|entry| entry.fields).unwrap_or_default();
        fields.extend(newer.fields);
        self.put(Entry { writer, fields, time: newer.time });
    }

    /// The entries, in the order of their writers' identities.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.0.into_values().collect()
    }
}

/// Writes `metadata.managedFields`: applies first, then by time, then by name. `None` if there are
/// no entries.
pub(super) fn encode(mut entries: Vec<Entry>) -> Option<Value> {
    if entries.is_empty() {
        return None;
    }
    entries.sort_by_cached_key(|entry| {
        let Writer { manager, operation, api_version, subresource } = entry.writer.clone();
        (operation, seconds(entry.time.as_deref()), manager, api_version, subresource)
    });
    Some(entries.iter().map(encode_entry).collect())
}

fn decode_entry(index: usize, entry: &Value) -> Result<Entry, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => {
            let other = golang::quote(other);
            return Err(format!("invalid fieldsType {other} in managed fields entry {index}"));
        }
    }
    let fields = match entry.get("fieldsV1") {
        Some(fields) => FieldSet::decode(fields).map_err(|error| {
            format!("error decoding versioned set: error decoding set: {error}")
        })?,
        None => FieldSet::default(),
    };
    Ok(Entry {
        writer: Writer {
            manager: text("manager").to_owned(),
            operation,
            api_version: text("apiVersion").to_owned(),
            subresource: text("subresource").to_owned(),
        },
        fields,
        time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
    })
}

fn encode_entry(entry: &Entry) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, text: &str| {
        if !text.is_empty() {
            out.insert(name.to_owned(), json!(text));
        }
    };
    put("manager", &entry.writer.manager);
    put("operation", entry.writer.operation.name());
    put("apiVersion", &entry.writer.api_version);
    put("time", entry.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &entry.writer.subresource);
    out.insert("fieldsV1".to_owned(), entry.fields.encode());
    Value::Object(out)
}

/// Seconds since 1970 of an entry's time; 0 for entries without one, so that they sort first.
fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|text| text.parse::<Timestamp>().ok()).map_or(0, Timestamp::as_second)
}
