//! How a write moves ownership: the rules of `structured-merge-diff`.
//!
//! Entries of other versions than the written one are taken as if they named the same fields: the
//! versions of a kind share most of them, and no conversion is at hand here.

use std::sync::LazyLock;

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::conflict::Conflicts;
use super::managers::{Entry, Managed, Operation, Writer};
use super::merge::merge;
use super::path::{PathElement, same_value};
use super::remove::without;
use super::reset::untracked_fields;
use super::set::FieldSet;
use super::shape::{Node, Shape};
use super::walk::fields_of;

static UNTRACKED: LazyLock<FieldSet> = LazyLock::new(untracked_fields);

/// Where a write goes.
pub(super) struct Endpoint<'a> {
    /// The schema of the objects.
    pub(super) node: Node<'a>,
    /// Fields that nobody can own through this endpoint.
    pub(super) reset: FieldSet,
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
) {
    reconcile(endpoint.node, managed);
    let mut comparison = compare(endpoint.node, live, new);
    if !endpoint.reset.is_empty() {
        comparison.filter(&|fields| fields.subtract_trees(&endpoint.reset));
    }
    hand_over(managed, &comparison);
    let mut fields = comparison.set_by_new();
    fields.subtract(&UNTRACKED);
    if !fields.is_empty() {
        if let Some(previous) = managed.remove(&writer.identity()) {
            fields.extend(previous.fields);
        }
        managed.put(Entry { writer, fields, time: Some(now.to_owned()) });
    }
    managed.cap_updates();
}

/// What an apply made of the live object.
pub(super) struct Applied {
    /// The merged object; `None` if nothing changed.
    pub(super) object: Option<Value>,
    /// The entries afterwards.
    pub(super) managed: Managed,
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
) -> Result<Applied, Conflicts> {
    let node = endpoint.node;
    reconcile(node, &mut managed);
    let identity = writer.identity();
    let mut fields = fields_of(node, config);
    fields.subtract_trees(&endpoint.reset);
    let last = managed.remove(&identity);
    let time = last.as_ref().and_then(|entry| entry.time.clone());
    // Nothing is given up by naming all of the last time again: the common case, and a cheap one.
    let given_up = last.filter(|last| !last.fields.is_subset(&fields));
    managed.put(Entry { writer: writer.clone(), fields, time });

    let mut merged = merge(node, live, config);
    if let Some(last) = given_up {
        merged = prune(node, &merged, &managed, &last.fields);
    }
    let mut comparison = compare(node, live, &merged);
    if !endpoint.reset.is_empty() {
        comparison.filter(&|fields| fields.subtract_trees(&endpoint.reset));
    }
    let contested = contested(&managed, &comparison, &identity);
    if !force && !contested.is_empty() {
        return Err(Conflicts::new(contested));
    }
    hand_over_except(&mut managed, &comparison, &identity);
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

fn hand_over(managed: &mut Managed, comparison: &Comparison) {
    hand_over_except(managed, comparison, "");
}

/// Takes from all others what was set or removed.
fn hand_over_except(managed: &mut Managed, comparison: &Comparison, identity: &str) {
    if !comparison.is_same() {
        for (_, entry) in managed.entries_mut().filter(|(other, _)| *other != identity) {
            entry.fields.subtract(&comparison.added);
            entry.fields.subtract(&comparison.modified);
            entry.fields.subtract(&comparison.removed);
        }
    }
    managed.drop_empty();
}

fn contested(
    managed: &Managed,
    comparison: &Comparison,
    identity: &str,
) -> Vec<(Writer, FieldSet)> {
    let set = comparison.set_by_new();
    managed
        .iter()
        .filter(|(other, _)| *other != identity)
        .map(|(_, entry)| (entry.writer.clone(), entry.fields.intersection(&set)))
        .filter(|(_, fields)| !fields.is_empty())
        .collect()
}

/// Removes what the applier named the last time, does not name now, and nobody else owns.
fn prune(node: Node<'_>, merged: &Value, managed: &Managed, last: &FieldSet) -> Value {
    let named = |fields: &FieldSet| fields.with_named_fields(Some(node));
    let last = named(last);
    let merged_fields = named(&fields_of(node, merged));

    // What somebody owns comes back, with everything that it stands in.
    let pruned = without(node, merged, &last);
    let mut keep = named(&fields_of(node, &pruned));
    let mut owned = FieldSet::default();
    for (_, entry) in managed.iter() {
        owned.extend(entry.fields.clone());
    }
    keep.extend(named(&owned));
    let pruned = without(node, merged, &merged_fields.difference(&keep));

    // What went along although the applier never named it (the rest of an item) comes back too.
    let pruned_fields = named(&fields_of(node, &pruned));
    without(node, merged, &merged_fields.difference(&pruned_fields).intersection(&last))
}

/// Fields that were owned item by item and are one value in today's schema are owned whole.
fn reconcile(node: Node<'_>, managed: &mut Managed) {
    for (_, entry) in managed.entries_mut() {
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
