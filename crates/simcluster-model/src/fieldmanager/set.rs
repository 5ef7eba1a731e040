//! Sets of paths: who owns what.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::PathElement;
use super::shape::Node;

/// A set of paths, as a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet(BTreeMap<PathElement, Branch>);

/// What the set holds at and below one step. Never both empty and no member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Branch {
    member: bool,
    below: FieldSet,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of paths of plain fields.
    pub(super) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let steps: Vec<PathElement> =
                path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&steps);
        }
        set
    }

    /// Adds a path. The empty path (the whole object) is nobody's.
    pub(super) fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.branch(last).member = true,
            [first, rest @ ..] => self.branch(first).below.insert(rest),
        }
    }

    fn branch(&mut self, step: &PathElement) -> &mut Branch {
        if !self.0.contains_key(step) {
            self.0.insert(step.clone(), Branch::default());
        }
        self.0.get_mut(step).expect("inserted just above")
    }

    /// Whether the set holds no path.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the path of one step is a member.
    pub(super) fn has(&self, step: &PathElement) -> bool {
        self.0.get(step).is_some_and(|branch| branch.member)
    }

    /// Whether the path is a member.
    pub(super) fn has_path(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => {
                self.0.get(first).is_some_and(|branch| branch.below.has_path(rest))
            }
        }
    }

    /// What the set holds below one step; `None` if nothing.
    pub(super) fn below(&self, step: &PathElement) -> Option<&Self> {
        self.0.get(step).map(|branch| &branch.below).filter(|below| !below.is_empty())
    }

    /// The steps that lead to members, with whether they are members themselves and what is below.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&PathElement, bool, &Self)> {
        self.0.iter().map(|(step, branch)| (step, branch.member, &branch.below))
    }

    /// Adds the paths of the other set.
    pub(super) fn extend(&mut self, other: Self) {
        for (step, theirs) in other.0 {
            let ours = self.0.entry(step).or_default();
            ours.member |= theirs.member;
            ours.below.extend(theirs.below);
        }
    }

    /// The paths of both.
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.extend(other.clone());
        union
    }

    /// The paths that are in both.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut both = BTreeMap::new();
        for (step, ours) in &self.0 {
            if let Some(theirs) = other.0.get(step) {
                let branch = Branch {
                    member: ours.member && theirs.member,
                    below: ours.below.intersection(&theirs.below),
                };
                if !branch.is_empty() {
                    both.insert(step.clone(), branch);
                }
            }
        }
        Self(both)
    }

    /// Drops the paths of the other set, and only these: what is below them stays.
    pub(super) fn subtract(&mut self, other: &Self) {
        self.0.retain(|step, ours| {
            if let Some(theirs) = other.0.get(step) {
                ours.member &= !theirs.member;
                ours.below.subtract(&theirs.below);
            }
            !ours.is_empty()
        });
    }

    /// Drops the paths of the other set with everything below them.
    pub(super) fn subtract_trees(&mut self, other: &Self) {
        self.0.retain(|step, ours| match other.0.get(step) {
            Some(theirs) if theirs.member => false,
            Some(theirs) => {
                ours.below.subtract_trees(&theirs.below);
                !ours.is_empty()
            }
            None => true,
        });
    }

    /// The set without the paths of the other.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// The set with every declared field on the way to a member added: removing a field whose owner
    /// named only what is in it then removes the field too.
    pub(super) fn with_named_fields(&self, node: Option<Node<'_>>) -> Self {
        let branches = self.0.iter().map(|(step, branch)| {
            let (declared, next) = match (step, node) {
                (PathElement::Field(name), Some(node)) => node
                    .member(name)
                    .map_or((false, None), |(next, declared)| (declared, Some(next))),
                (PathElement::Key(_), Some(node)) => (false, Some(node.item())),
                (PathElement::Field(_) | PathElement::Key(_), None)
                | (PathElement::Value(_) | PathElement::Index(_), _) => (false, None),
            };
            let member = branch.member || (declared && !branch.below.is_empty());
            (step.clone(), Branch { member, below: branch.below.with_named_fields(next) })
        });
        Self(branches.collect())
    }

    /// Whether the other set has all paths of this one.
    pub(super) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|(step, ours)| {
            other.0.get(step).is_some_and(|theirs| {
                (theirs.member || !ours.member) && ours.below.is_subset(&theirs.below)
            })
        })
    }

    /// Calls `visit` with every path: those of one step first, as the server orders conflicts.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&[PathElement])) {
        self.for_each_from(&mut Vec::new(), visit);
    }

    fn for_each_from(&self, path: &mut Vec<PathElement>, visit: &mut dyn FnMut(&[PathElement])) {
        for (step, _) in self.0.iter().filter(|(_, branch)| branch.member) {
            path.push(step.clone());
            visit(path);
            path.pop();
        }
        for (step, branch) in self.0.iter().filter(|(_, branch)| !branch.below.is_empty()) {
            path.push(step.clone());
            branch.below.for_each_from(path, visit);
            path.pop();
        }
    }

    /// `fieldsV1`.
    pub(super) fn encode(&self) -> Value {
        Value::Object(self.encode_fields())
    }

    fn encode_fields(&self) -> Map<String, Value> {
        let mut out = Map::new();
        for (step, branch) in &self.0 {
            let mut below = branch.below.encode_fields();
            if branch.member && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(step.encode(), Value::Object(below));
        }
        out
    }

    /// Reads `fieldsV1`. Steps of unknown kinds are skipped.
    pub(super) fn decode(fields: &Value) -> Result<Self, String> {
        let mut set = Self::default();
        let map = match fields {
            Value::Object(map) => map,
            Value::Null => return Ok(set),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(format!("expect {{ or n, but found {fields}"));
            }
        };
        for (text, below) in map.iter().filter(|(text, _)| *text != ".") {
            let Some(step) = PathElement::parse(text)? else { continue };
            let dotted = below.get(".").is_some();
            let below = Self::decode(below)?;
            let member = dotted || below.is_empty();
            set.0.insert(step, Branch { member, below });
        }
        Ok(set)
    }
}
