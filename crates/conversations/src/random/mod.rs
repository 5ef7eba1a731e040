//! Random short conversations, made from a seed: all verbs and kinds of patches on a few objects of the
//! resources in `resources.yaml`, with right, odd and broken bodies.

mod body;
mod dice;
mod odd;
mod options;
mod resources;

use std::collections::BTreeMap;

use self::dice::Dice;
use self::resources::Resource;
use crate::case::Step;
use crate::text::put;

/// The fixture that the conversations need.
pub const FIXTURE: &str = "gadgets";

/// The most requests that a conversation has.
const STEPS_MAX: usize = 14;
/// The fewest.
const STEPS_MIN: usize = 3;
/// How much of the first steps' versions is remembered for later ones.
const SAVED_MAX: usize = 3;

/// The conversation of a seed; on one resource only if `only` names it.
#[must_use]
pub fn conversation(seed: u64, only: Option<&str>) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let all = resources::all();
    let chosen = only.and_then(|plural| all.iter().find(|one| one.plural == plural));
    let main = chosen.unwrap_or_else(|| dice.weighted(all, |one| one.weight));
    let count = STEPS_MIN + dice.below(STEPS_MAX - STEPS_MIN + 1);
    let mut maker = Maker { dice, resource: main, saved: 0 };
    let mut steps = Vec::new();
    while steps.len() < count {
        maker.resource = if only.is_none() && maker.dice.chance(10) {
            maker.dice.weighted(all, |one| one.weight)
        } else {
            main
        };
        let first = steps.is_empty();
        let step = maker.step(first);
        steps.push(step);
    }
    steps
}

/// What the next step is made from.
struct Maker {
    dice: Dice,
    resource: &'static Resource,
    /// How many versions were saved so far.
    saved: usize,
}

/// Verbs and how often they come; see [`Maker::step`].
const VERBS: [(&str, usize); 15] = [
    ("create", 14),
    ("apply", 18),
    ("update", 13),
    ("merge", 10),
    ("json", 9),
    ("strategic", 8),
    ("get", 5),
    ("list", 7),
    ("delete", 8),
    ("deletecollection", 3),
    ("subresource", 14),
    ("finish", 2),
    ("watch", 1),
    ("generate", 1),
    ("wrong", 1),
];

impl Maker {
    /// One request. The first of a conversation makes an object.
    fn step(&mut self, first: bool) -> Step {
        let verb = if first && self.dice.chance(85) {
            if self.dice.chance(50) { "create" } else { "apply" }
        } else {
            self.dice.weighted(&VERBS, |(_, weight)| *weight).0
        };
        let name = self.name();
        let item = format!("{}/{name}", self.collection());
        let mut step = match verb {
            "create" => self.create(&name),
            "generate" => self.generate(),
            "update" => self.update(&item, &name),
            "get" => self.get(&item),
            "list" => self.list(),
            "watch" => self.watch(),
            "delete" => self.delete(&item),
            "deletecollection" => self.delete_collection(),
            "finish" => Self::finish(&item),
            "subresource" => self.subresource(&item, &name),
            "wrong" => self.wrong(&item),
            patch => self.patch(patch, &item, &name, ""),
        };
        step.keep = vec!["Warning".to_owned()];
        if matches!(verb, "create" | "apply" | "update" | "merge") && self.saved < SAVED_MAX {
            self.saved += 1;
            let place = "metadata.resourceVersion".to_owned();
            step.save = BTreeMap::from([(format!("rv{}", self.saved), place)]);
        }
        step
    }

    /// The name of an object; few, so that requests meet.
    fn name(&mut self) -> String {
        let name = self.dice.text(&["a", "a", "a", "a", "a", "b"]);
        if self.resource.cluster { format!("{{ns}}-{name}") } else { name }
    }

    fn version(&mut self) -> String {
        match &self.resource.old {
            Some(old) if self.dice.chance(6) => old.clone(),
            _ => "v1".to_owned(),
        }
    }

    /// The path of the resource.
    fn collection(&mut self) -> String {
        let version = self.version();
        let resource = self.resource;
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let version = resource.api_version(&version);
        let namespace = if resource.cluster { "" } else { "/namespaces/{ns}" };
        format!("{root}/{version}{namespace}/{}", resource.plural)
    }

    fn create(&mut self, name: &str) -> Step {
        let collection = self.collection();
        let query = self.write_options(false);
        let mut step = Step::new(format!("POST {collection}{query}"));
        let object = self.object(name);
        self.send(&mut step, &object);
        step
    }

    /// A create with `generateName`.
    fn generate(&mut self) -> Step {
        let collection = self.collection();
        let prefix = if self.resource.cluster { "{ns}-g-" } else { "g-" };
        let mut step = Step::new(format!("POST {collection}"));
        let mut object = self.object("");
        put(&mut object, "metadata.generateName", prefix.into());
        step.body = Some(object);
        step
    }

    fn update(&mut self, item: &str, name: &str) -> Step {
        let query = self.write_options(false);
        let mut step = Step::new(format!("PUT {item}{query}"));
        let object = self.object(name);
        self.send(&mut step, &object);
        step
    }

    fn patch(&mut self, kind: &str, item: &str, name: &str, subresource: &str) -> Step {
        let query = self.write_options(kind == "apply");
        let mut step = Step::new(format!("PATCH {item}{query}"));
        let content_type = match kind {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            _ => "application/apply-patch+yaml",
        };
        step.headers.insert("Content-Type".to_owned(), content_type.to_owned());
        let patch = match kind {
            "json" => self.json_patch(subresource),
            "apply" if subresource == "scale" => self.scale(name),
            "apply" => self.object(name),
            "strategic" => self.strategic(subresource),
            _ => self.partial(subresource),
        };
        if kind == "apply" {
            self.send_yaml(&mut step, &patch);
        } else {
            self.send(&mut step, &patch);
        }
        step
    }

    fn get(&mut self, item: &str) -> Step {
        // A version that is yet to come is waited for: not often.
        let query = match self.dice.below(50) {
            0 => "?resourceVersion=999999999".to_owned(),
            1..6 => self.dice.text(&["?resourceVersion=x", "?pretty=true", "?resourceVersion=-1"]),
            _ => String::new(),
        };
        let mut step = Step::new(format!("GET {item}{query}"));
        self.accept(&mut step);
        step
    }

    fn list(&mut self) -> Step {
        let collection = self.collection();
        let query = self.list_options();
        let mut step = Step::new(format!("GET {collection}{query}"));
        self.accept(&mut step);
        step
    }

    /// A watch of what happened since a version that was seen.
    fn watch(&mut self) -> Step {
        let collection = self.collection();
        let from = self.seen_version();
        let mut query = format!("?watch=1&timeoutSeconds=1&resourceVersion={from}");
        if self.dice.chance(30) {
            query.push_str(
                &self.dice.text(&["&labelSelector=app%3Da", "&fieldSelector=metadata.name%3Da"]),
            );
        }
        if self.resource.cluster {
            query = query.replace("metadata.name%3Da", "metadata.name%3D{ns}-a");
            query.push_str("&labelSelector=kubernetes.io/metadata.name%3D{ns}-a");
        }
        let mut step = Step::new(format!("GET {collection}{query}"));
        step.events = Some(50);
        step.seconds = 5.0;
        self.accept(&mut step);
        step
    }

    fn delete(&mut self, item: &str) -> Step {
        let query = self.delete_query();
        let mut step = Step::new(format!("DELETE {item}{query}"));
        self.delete_body(&mut step);
        if self.dice.chance(10) {
            self.accept(&mut step);
        }
        step
    }

    fn delete_collection(&mut self) -> Step {
        let collection = self.collection();
        let mut query = self.delete_query();
        let selector = if self.resource.cluster {
            // Nobody else's namespaces.
            "labelSelector=kubernetes.io/metadata.name%3D{ns}-a".to_owned()
        } else {
            self.dice.text(&[
                "",
                "",
                "labelSelector=app%3Da",
                "labelSelector=app!%3Da",
                "fieldSelector=metadata.name%3Da",
                "labelSelector=%3D",
                "limit=1",
                "resourceVersion=x",
            ])
        };
        if !selector.is_empty() {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(&selector);
        }
        let mut step = Step::new(format!("DELETE {collection}{query}"));
        self.delete_body(&mut step);
        step
    }

    /// Takes all finalizers away, so that what is being deleted goes.
    fn finish(item: &str) -> Step {
        let mut step = Step::new(format!("PATCH {item}"));
        step.headers.insert("Content-Type".to_owned(), "application/merge-patch+json".to_owned());
        step.body = Some(serde_json::json!({ "metadata": { "finalizers": null } }));
        step
    }

    fn subresource(&mut self, item: &str, name: &str) -> Step {
        let known: Vec<&str> = self.resource.subresources.iter().map(String::as_str).collect();
        let subresource = if known.is_empty() || self.dice.chance(2) {
            self.dice.text(&["status", "scale", "x"])
        } else {
            self.dice.text(&known)
        };
        let item = format!("{item}/{subresource}");
        let verb = self.dice.text(&["get", "update", "merge", "json", "apply", "strategic"]);
        match verb.as_str() {
            "get" => self.get(&item),
            "update" => {
                let query = self.write_options(false);
                let mut step = Step::new(format!("PUT {item}{query}"));
                let object =
                    if subresource == "scale" { self.scale(name) } else { self.object(name) };
                self.send(&mut step, &object);
                step
            }
            patch => self.patch(patch, &item, name, &subresource),
        }
    }

    /// A request that has no meaning.
    fn wrong(&mut self, item: &str) -> Step {
        let collection = self.collection();
        let line = match self.dice.below(6) {
            0 => format!("POST {item}"),
            1 => format!("PUT {collection}"),
            2 => format!("PATCH {collection}"),
            3 => format!("GET {collection}x"),
            4 => format!("PATCH {item}/x"),
            _ => format!("DELETE {item}/status"),
        };
        let mut step = Step::new(line);
        if !step.line.starts_with("GET") {
            let object = self.object("a");
            self.send(&mut step, &object);
        }
        step
    }
}

#[cfg(test)]
mod tests;
