//! Who owns whom, and what follows from it, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use simcluster_model::metadata::{FOREGROUND, ORPHAN};

/// So many objects that are gone are remembered, to save the look-ups of their dependents.
const GONE_MAX: usize = 1000;

/// A kind of object: its group and kind.
pub(crate) type GroupKind = (String, String);

/// The group and kind that a reference names.
pub(crate) fn kind_of(reference: &OwnerReference) -> GroupKind {
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), reference.kind.clone())
}

/// An object as the graph knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: GroupKind,
    pub(crate) meta: Arc<ObjectMeta>,
}

impl Node {
    pub(crate) fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.meta.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = &OwnerReference> {
        self.meta.owner_references.iter().flatten()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.meta.deletion_timestamp.is_some()
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.meta.finalizers.iter().flatten().any(|one| one == name)
    }

    /// Whether it waits for its dependents to go.
    pub(crate) fn waits_for_dependents(&self) -> bool {
        self.is_deleting() && self.has_finalizer(FOREGROUND)
    }

    /// Whether it waits for its dependents to be set free.
    fn waits_for_orphans(&self) -> bool {
        self.is_deleting() && self.has_finalizer(ORPHAN)
    }
}

/// All objects and the references between them.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: BTreeMap<String, Node>,
    dependents: BTreeMap<String, BTreeSet<String>>,
    /// The dependents of each owner that hold it while it waits for them to go.
    blocking: BTreeMap<String, BTreeSet<String>>,
    gone: BTreeMap<String, Node>,
}

/// What is known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It is there.
    Solid,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// There is no such object.
    Absent,
}

/// What a deletion does with the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// What to do about an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing.
    Keep,
    /// Set its dependents free, then remove the finalizer.
    SetFree(Vec<Node>),
    /// Remove the finalizer: nothing that blocks it is left.
    Release,
    /// Remove the references to these owners.
    DropOwners(Vec<String>),
    /// Delete it once its own dependents are gone. `unblock`: it is part of a cycle, so its references
    /// must not block its owners any longer.
    DeleteInForeground {
        /// Whether to make the references non-blocking first.
        unblock: bool,
    },
    /// Delete it, in the way that its finalizers ask for.
    Delete(Way),
}

impl Graph {
    /// The object of a UID.
    pub(crate) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Takes in an object. Returns the UIDs of those to look at.
    pub(crate) fn observe(&mut self, node: &Node) -> BTreeSet<String> {
        let mut look = BTreeSet::new();
        let uid = node.uid().to_owned();
        let old = self.nodes.insert(uid.clone(), node.clone());
        let references = |node: &Node| node.meta.owner_references.clone().unwrap_or_default();
        let before = old.as_ref().map(references).unwrap_or_default();
        for reference in &before {
            let now = node.owners().find(|one| one.uid == reference.uid);
            if now.is_none() && unlink(&mut self.dependents, &reference.uid, &uid) {
                self.gone.remove(&reference.uid);
            }
            if blocks(reference) && !now.is_some_and(blocks) {
                unlink(&mut self.blocking, &reference.uid, &uid);
                look.insert(reference.uid.clone());
            }
        }
        for reference in node.owners() {
            self.dependents.entry(reference.uid.clone()).or_default().insert(uid.clone());
            if blocks(reference) {
                self.blocking.entry(reference.uid.clone()).or_default().insert(uid.clone());
            }
        }
        let is_changed = references(node) != before;
        if is_changed && node.owners().any(|one| self.owner(node, one) != Some(Owner::Solid)) {
            look.insert(uid.clone());
        }
        if node.waits_for_orphans() && !old.as_ref().is_some_and(Node::waits_for_orphans) {
            look.insert(uid.clone());
        }
        if node.waits_for_dependents() && !old.as_ref().is_some_and(Node::waits_for_dependents) {
            look.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
            look.insert(uid);
        } else if old.is_none() {
            // Dependents that named it before it was known may name it wrongly.
            let dependents = self.dependents.get(&uid).into_iter().flatten();
            look.extend(dependents.cloned());
        }
        look
    }

    /// Takes out an object that is gone. Returns the UIDs of those to look at: its dependents, and
    /// owners that may have waited for it.
    pub(crate) fn remove(&mut self, uid: &str) -> BTreeSet<String> {
        let Some(node) = self.nodes.remove(uid) else { return BTreeSet::new() };
        let mut look = self.dependents.get(uid).cloned().unwrap_or_default();
        if !look.is_empty() {
            if self.gone.len() >= GONE_MAX {
                self.gone.pop_first();
            }
            self.gone.insert(uid.to_owned(), node.clone());
        }
        for reference in node.owners() {
            unlink(&mut self.blocking, &reference.uid, uid);
            if unlink(&mut self.dependents, &reference.uid, uid) {
                self.gone.remove(&reference.uid);
            }
            if self.nodes.get(&reference.uid).is_some_and(Node::waits_for_dependents) {
                look.insert(reference.uid.clone());
            }
        }
        look
    }

    fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|uid| self.nodes.get(uid))
    }

    /// What the graph knows of an owner; `None` if only the server can tell. A reference counts only if
    /// it names the owner rightly, and an owner in another namespace does not count.
    pub(crate) fn owner(&self, dependent: &Node, reference: &OwnerReference) -> Option<Owner> {
        let is_gone = self.gone.get(&reference.uid);
        let owner = is_gone.or_else(|| self.nodes.get(&reference.uid))?;
        let is_in_reach =
            owner.namespace().is_empty() || owner.namespace() == dependent.namespace();
        if owner.kind != kind_of(reference) || owner.name() != reference.name || !is_in_reach {
            return None;
        }
        if is_gone.is_some() {
            return Some(Owner::Absent);
        }
        Some(if owner.waits_for_dependents() { Owner::Waiting } else { Owner::Solid })
    }

    /// Whether a reference names an object that lives in another namespace.
    pub(crate) fn is_across_namespaces(
        &self,
        dependent: &Node,
        reference: &OwnerReference,
    ) -> bool {
        self.nodes.get(&reference.uid).is_some_and(|owner| {
            !owner.namespace().is_empty() && owner.namespace() != dependent.namespace()
        })
    }

    /// Decides about an object, given what is known of each of its owners (by UID).
    pub(crate) fn judge(&self, node: &Node, owners: &BTreeMap<String, Owner>) -> Verdict {
        if node.waits_for_orphans() {
            return Verdict::SetFree(self.dependents(node.uid()).cloned().collect());
        }
        if node.waits_for_dependents() {
            let is_held = self.blocking.contains_key(node.uid());
            return if is_held { Verdict::Keep } else { Verdict::Release };
        }
        if node.is_deleting() || owners.is_empty() {
            return Verdict::Keep;
        }
        let of = |wanted: Owner| owners.values().any(|owner| *owner == wanted);
        if of(Owner::Solid) {
            let lost: Vec<String> = owners
                .iter()
                .filter(|(_, owner)| **owner != Owner::Solid)
                .map(|(uid, _)| uid.clone())
                .collect();
            return if lost.is_empty() { Verdict::Keep } else { Verdict::DropOwners(lost) };
        }
        let mut dependents = self.dependents(node.uid()).peekable();
        if of(Owner::Waiting) && dependents.peek().is_some() {
            return Verdict::DeleteInForeground {
                unblock: dependents.any(Node::waits_for_dependents),
            };
        }
        Verdict::Delete(if node.has_finalizer(ORPHAN) {
            Way::Orphan
        } else if node.has_finalizer(FOREGROUND) {
            Way::Foreground
        } else {
            Way::Background
        })
    }
}

/// Whether a dependent holds its owner by this reference.
fn blocks(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}

/// Takes a dependent from those of an owner; whether it was the last.
fn unlink(links: &mut BTreeMap<String, BTreeSet<String>>, owner: &str, dependent: &str) -> bool {
    let Some(dependents) = links.get_mut(owner) else { return false };
    dependents.remove(dependent);
    let is_last = dependents.is_empty();
    if is_last {
        links.remove(owner);
    }
    is_last
}
