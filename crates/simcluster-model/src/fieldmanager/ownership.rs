//! How a write moves ownership: the rules of `structured-merge-diff`, `merge/update.go`.
//!
//! Who owns fields in another version is asked in that version: both states are converted.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::check::{Duplicates, check};
use super::compare::{Comparison, compare};
use super::conflict::Conflicts;
use super::managers::{Entry, Managed, Operation, Writer};
use super::merge::merge;
use super::path::{PathElement, same_value};
use super::remove::without;
use super::reset::untracked_fields;
use super::set::FieldSet;
use super::shape::{Node, Shape};
use super::versions::{VersionFault, Versioned, Versions};
use super::walk::fields_of;
use crate::schema::Schema;

static UNTRACKED: LazyLock<FieldSet> = LazyLock::new(untracked_fields);

/// Where a write goes.
pub(super) struct Endpoint<'a> {
    /// The version that is written.
    pub(super) version: String,
    /// The schema of the objects.
    pub(super) node: Node<'a>,
    /// Fields that nobody can own through this endpoint.
    pub(super) reset: FieldSet,
    /// The objects in other versions.
    pub(super) versions: &'a dyn Versions,
}

impl Endpoint<'_> {
    /// An object in a version, if there is such a version.
    fn at(&self, object: &Value, version: &str) -> Result<Option<Typed<'_>>, VersionFault> {
        if version == self.version && of_version(object, version) {
            return Ok(Some(Typed { object: object.clone(), schema: Types::Own(self.node) }));
        }
        match self.versions.convert(object, version) {
            Ok(Versioned { object, schema }) => {
                // Nobody has pruned what the version does not know.
                check(Node::root(&schema), &object, Duplicates::Allowed)
                    .map_err(|why| VersionFault::Failed(why.to_string()))?;
                Ok(Some(Typed { object, schema: Types::Other(schema) }))
            }
            Err(VersionFault::Missing) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    fn compare(&self, node: Node<'_>, live: &Value, new: &Value) -> Comparison {
        let mut comparison = compare(node, live, new);
        if !self.reset.is_empty() {
            comparison.filter(&|fields| fields.subtract_trees(&self.reset));
        }
        comparison
    }
}

/// An object with the types of its version.
struct Typed<'a> {
    object: Value,
    schema: Types<'a>,
}

enum Types<'a> {
    Own(Node<'a>),
    Other(Arc<Schema>),
}

impl Typed<'_> {
    fn node(&self) -> Node<'_> {
        match &self.schema {
            Types::Own(node) => *node,
            Types::Other(schema) => Node::root(schema),
        }
    }
}

fn of_version(object: &Value, version: &str) -> bool {
    object.get("apiVersion").and_then(Value::as_str) == Some(version)
}

/// What a write changed, in each version in which somebody owns fields.
struct Changes {
    own: Comparison,
    others: BTreeMap<String, Comparison>,
}

impl Changes {
    /// Compares two states. Who owns fields in a version that does not exist owns nothing any more.
    fn between(
        endpoint: &Endpoint<'_>,
        live: &Value,
        new: &Value,
        managed: &mut Managed,
    ) -> Result<Self, VersionFault> {
        let own = endpoint.compare(endpoint.node, live, new);
        let mut others = BTreeMap::new();
        for version in managed.other_versions(&endpoint.version) {
            let at = |object: &Value, what: &str| {
                let converted = endpoint.at(object, &version);
                converted.map_err(|fault| fault.when(&format!("failed to convert {what} object")))
            };
            let (Some(live), Some(new)) = (at(live, "old")?, at(new, "new")?) else {
                managed.drop_version(&version);
                continue;
            };
            let comparison = endpoint.compare(live.node(), &live.object, &new.object);
            others.insert(version, comparison);
        }
        Ok(Self { own, others })
    }

    fn at(&self, version: &str) -> &Comparison {
        self.others.get(version).unwrap_or(&self.own)
    }
}

/// Records that `writer` changed `live` to `new`: it gets the fields that it set, all others lose
/// what was changed or removed.
pub(super) fn update(
    endpoint: &Endpoint<'_>,
    live: &Value,
    new: &Value,
    managed: &mut Managed,
    writer: Writer,
    now: &str,
) -> Result<(), VersionFault> {
    reconcile(endpoint, live, managed)?;
    let changes = Changes::between(endpoint, live, new, managed)?;
    hand_over(managed, &changes, "");
    let mut fields = changes.own.set_by_new();
    fields.subtract(&UNTRACKED);
    if !fields.is_empty() {
        if let Some(previous) = managed.remove(&writer.identity()) {
            fields.extend(previous.fields);
        }
        managed.put(Entry { writer, fields, time: Some(now.to_owned()) });
    }
    managed.cap_updates();
    Ok(())
}

/// What an apply made of the live object.
pub(super) struct Applied {
    /// The merged object; `None` if nothing changed.
    pub(super) object: Option<Value>,
    /// The entries afterwards.
    pub(super) managed: Managed,
}

/// Why nothing was applied.
pub(super) enum Refusal {
    /// Others own what it would change.
    Conflicts(Conflicts),
    /// Another version is not to be had.
    Version(VersionFault),
}

impl From<VersionFault> for Refusal {
    fn from(fault: VersionFault) -> Self {
        Self::Version(fault)
    }
}

/// Merges `config` into `live` and hands the fields that it names to `writer`. Fields that only
/// `writer` owned and no longer names are removed.
pub(super) fn apply(
    endpoint: &Endpoint<'_>,
    live: &Value,
    config: &Value,
    mut managed: Managed,
    writer: &Writer,
    force: bool,
    now: &str,
) -> Result<Applied, Refusal> {
    let node = endpoint.node;
    reconcile(endpoint, live, &mut managed)?;
    let identity = writer.identity();
    let mut fields = fields_of(node, config);
    fields.subtract_trees(&endpoint.reset);
    let last = managed.remove(&identity);
    let time = last.as_ref().and_then(|entry| entry.time.clone());
    // Nothing is given up by naming all of the last time again: the common case, and a cheap one.
    let given_up = last.filter(|last| {
        last.writer.api_version != writer.api_version || !last.fields.is_subset(&fields)
    });
    managed.put(Entry { writer: writer.clone(), fields, time });

    let mut merged = merge(node, live, config);
    if let Some(last) = given_up {
        merged = prune(endpoint, &merged, &managed, &last)?;
    }
    let changes = Changes::between(endpoint, live, &merged, &mut managed)?;
    let contested = contested(&managed, &changes, &identity);
    if !force && !contested.is_empty() {
        return Err(Refusal::Conflicts(Conflicts::new(contested)));
    }
    hand_over(&mut managed, &changes, &identity);
    let changed = !same_value(live, &merged);
    if let Some(entry) = managed.get_mut(&identity) {
        entry.fields.subtract(&UNTRACKED);
        if changed {
            entry.time = Some(now.to_owned());
        }
    }
    managed.drop_empty();
    Ok(Applied { object: changed.then_some(merged), managed })
}

/// Takes from all others than one what was set or removed.
fn hand_over(managed: &mut Managed, changes: &Changes, identity: &str) {
    for (_, entry) in managed.entries_mut().filter(|(other, _)| *other != identity) {
        let comparison = changes.at(&entry.writer.api_version);
        if !comparison.is_same() {
            entry.fields.subtract(&comparison.added);
            entry.fields.subtract(&comparison.modified);
            entry.fields.subtract(&comparison.removed);
        }
    }
    managed.drop_empty();
}

fn contested(managed: &Managed, changes: &Changes, identity: &str) -> Vec<(Writer, FieldSet)> {
    managed
        .iter()
        .filter(|(other, _)| *other != identity)
        .map(|(_, entry)| {
            let set = changes.at(&entry.writer.api_version).set_by_new();
            (entry.writer.clone(), entry.fields.intersection(&set))
        })
        .filter(|(_, fields)| !fields.is_empty())
        .collect()
}

/// Removes what the applier named the last time, does not name now, and nobody else owns.
fn prune(
    endpoint: &Endpoint<'_>,
    merged: &Value,
    managed: &Managed,
    last: &Entry,
) -> Result<Value, VersionFault> {
    let version = &last.writer.api_version;
    let when =
        |fault: VersionFault| fault.when("failed to convert merged object to last applied version");
    let Some(merged) = endpoint.at(merged, version).map_err(when)? else {
        return Ok(merged.clone());
    };
    let named_last = last.fields.with_named_fields(Some(merged.node()));
    let mut pruned = without(merged.node(), &merged.object, &named_last);
    // What somebody owns comes back, with everything that it stands in.
    let others = managed.other_versions(version);
    for owned_version in std::iter::once(version).chain(&others) {
        pruned = with_owned(endpoint, &merged.object, pruned, managed, owned_version)?;
    }

    // What went along although the applier never named it (the rest of an item) comes back too.
    if let Some(there) = endpoint.at(&pruned, version)? {
        let node = merged.node();
        let named = |object: &Value| fields_of(node, object).with_named_fields(Some(node));
        let lost = named(&merged.object).difference(&named(&there.object));
        pruned = without(node, &merged.object, &lost.intersection(&named_last));
    }
    Ok(endpoint.at(&pruned, &endpoint.version)?.map_or(pruned, |there| there.object))
}

/// What was removed, without that which somebody owns in a version.
fn with_owned(
    endpoint: &Endpoint<'_>,
    merged: &Value,
    pruned: Value,
    managed: &Managed,
    version: &str,
) -> Result<Value, VersionFault> {
    let (Some(merged), Some(there)) =
        (endpoint.at(merged, version)?, endpoint.at(&pruned, version)?)
    else {
        return Ok(pruned);
    };
    let node = merged.node();
    let named = |fields: &FieldSet| fields.with_named_fields(Some(node));
    let mut owned = FieldSet::default();
    for (_, entry) in managed.iter().filter(|(_, entry)| entry.writer.api_version == version) {
        owned.extend(entry.fields.clone());
    }
    let mut keep = named(&fields_of(node, &there.object));
    keep.extend(named(&owned));
    let merged_fields = named(&fields_of(node, &merged.object));
    Ok(without(node, &merged.object, &merged_fields.difference(&keep)))
}

/// In each version: fields that were owned item by item and are one value in today's schema are owned
/// whole. What was owned in a version that does not exist is nobody's.
fn reconcile(
    endpoint: &Endpoint<'_>,
    live: &Value,
    managed: &mut Managed,
) -> Result<(), VersionFault> {
    for version in managed.other_versions(&endpoint.version) {
        match endpoint.at(live, &version)? {
            Some(there) => reconcile_version(there.node(), &version, managed),
            None => managed.drop_version(&version),
        }
    }
    reconcile_version(endpoint.node, &endpoint.version, managed);
    Ok(())
}

fn reconcile_version(node: Node<'_>, version: &str, managed: &mut Managed) {
    let of_version = |entry: &&mut Entry| entry.writer.api_version == version;
    for entry in managed.entries_mut().map(|(_, entry)| entry).filter(of_version) {
        let mut whole = FieldSet::default();
        find_whole(node, &entry.fields, false, &mut Vec::new(), &mut whole);
        if !whole.is_empty() {
            entry.fields.subtract_trees(&whole);
            entry.fields.extend(whole);
        }
    }
}

fn find_whole(
    node: Node<'_>,
    fields: &FieldSet,
    is_leaf: bool,
    path: &mut Vec<PathElement>,
    whole: &mut FieldSet,
) {
    let atomic = match node.declared_shape() {
        Shape::Scalar(_) => return,
        Shape::List => node.is_atomic_list(),
        Shape::Map if node.is_deduced_map() && !node.is_atomic_map() => return,
        Shape::Map => node.is_atomic_map(),
    };
    if atomic {
        if !is_leaf {
            whole.insert(path);
        }
        return;
    }
    for (step, member, below) in fields.steps() {
        let next = match step {
            PathElement::Field(name) => node.member(name).map(|(next, _)| next),
            PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => {
                Some(node.item())
            }
        };
        if let Some(next) = next {
            path.push(step.clone());
            find_whole(next, below, member && below.is_empty(), path, whole);
            path.pop();
        }
    }
}

/// The writer of an Update.
pub(super) fn updater(manager: &str, api_version: String, subresource: &str) -> Writer {
    writer(manager, Operation::Update, api_version, subresource)
}

/// The writer of an Apply.
pub(super) fn applier(manager: &str, api_version: String, subresource: &str) -> Writer {
    writer(manager, Operation::Apply, api_version, subresource)
}

fn writer(manager: &str, operation: Operation, api_version: String, subresource: &str) -> Writer {
    let manager = if manager.is_empty() { "unknown" } else { manager };
    Writer {
        manager: manager.to_owned(),
        operation,
        api_version,
        subresource: subresource.to_owned(),
    }
}
