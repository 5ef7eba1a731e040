//! The cache between the watch and our own writes.

use kube::runtime::watcher::Event;
use simpleapp_operator::kernel::{
    cache::{Cache, Cached},
    key::Key,
};

#[derive(Debug, Clone, PartialEq)]
struct Thing {
    key: Key,
    uid: String,
    version: String,
}

impl Cached for Thing {
    fn key(&self) -> &Key {
        &self.key
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.version
    }
}

fn key(name: &str) -> Key {
    Key::new("shop", name)
}

fn thing(name: &str, uid: &str, version: u64) -> Thing {
    Thing { key: key(name), uid: uid.into(), version: version.to_string() }
}

/// UID and version of `web`, as known now.
fn known(cache: &Cache<Thing>) -> Option<(String, String)> {
    cache.get(&key("web")).map(|thing| (thing.uid.clone(), thing.version.clone()))
}

fn is(uid: &str, version: u64) -> Option<(String, String)> {
    Some((uid.to_owned(), version.to_string()))
}

/// Tells the cache of an event, and says how many changes it saw.
fn hear(cache: &Cache<Thing>, event: Event<Thing>) -> usize {
    cache.absorb("", event).len()
}

#[test]
fn the_watch_is_believed() {
    let cache = Cache::default();
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 1))), 1);
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 2))), 1);
    assert_eq!(known(&cache), is("a", 2));
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 2))), 0, "a replay is no change");
    assert_eq!(hear(&cache, Event::Delete(thing("web", "a", 3))), 1);
    assert_eq!(known(&cache), None);
}

#[test]
fn our_own_write_is_known_at_once_and_heard_of_without_surprise() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    cache.wrote(thing("web", "a", 3));
    cache.wrote(thing("web", "a", 5));
    assert_eq!(known(&cache), is("a", 5));
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 3))), 0, "our first write");
    assert_eq!(known(&cache), is("a", 5));
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 5))), 0, "our write itself");
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 6))), 1);
    assert_eq!(known(&cache), is("a", 6));
}

/// The answer to our write holds a change that somebody made just before it. It must be told, or
/// nobody ever looks at it.
#[test]
fn a_change_by_others_just_before_our_write_is_not_lost() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    cache.wrote(thing("web", "a", 5));
    let changes = cache.absorb("", Event::Apply(thing("web", "a", 4)));
    assert_eq!(changes.len(), 1);
    let versions = [&changes[0].old, &changes[0].new]
        .map(|side| side.as_ref().map(|thing| thing.version.clone()));
    assert_eq!(versions, [Some("1".to_owned()), Some("5".to_owned())]);
    assert_eq!(known(&cache), is("a", 5), "what our write made is still the newest");
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 5))), 0);
}

#[test]
fn an_answer_that_comes_after_the_watch_is_old_news() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 7)));
    cache.wrote(thing("web", "a", 5));
    assert_eq!(known(&cache), is("a", 7));
}

#[test]
fn what_we_made_and_somebody_deleted_is_gone() {
    let cache = Cache::default();
    cache.wrote(thing("web", "a", 5));
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 5))), 0);
    assert_eq!(hear(&cache, Event::Delete(thing("web", "a", 6))), 1);
    assert_eq!(known(&cache), None);
}

#[test]
fn the_end_of_an_older_object_does_not_hide_the_one_we_made() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    cache.wrote(thing("web", "b", 9));
    assert_eq!(hear(&cache, Event::Delete(thing("web", "a", 8))), 0);
    assert_eq!(known(&cache), is("b", 9));
}

#[test]
fn what_we_deleted_is_gone_before_the_watch_tells() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    cache.removed(&key("web"), "a");
    assert_eq!(known(&cache), None);
    assert_eq!(hear(&cache, Event::Apply(thing("web", "a", 2))), 0, "from before our delete");
    assert_eq!(known(&cache), None);
    hear(&cache, Event::Delete(thing("web", "a", 3)));
    assert_eq!(hear(&cache, Event::Apply(thing("web", "b", 4))), 1);
    assert_eq!(known(&cache), is("b", 4));
}

#[test]
fn what_was_made_anew_after_our_delete_is_seen() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    cache.removed(&key("web"), "a");
    assert_eq!(hear(&cache, Event::Apply(thing("web", "b", 4))), 1);
    assert_eq!(known(&cache), is("b", 4));
}

#[test]
fn a_list_replaces_what_was_known() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    hear(&cache, Event::Apply(thing("old", "o", 2)));
    cache.wrote(thing("mine", "m", 3));
    hear(&cache, Event::Init);
    assert_eq!(hear(&cache, Event::InitApply(thing("web", "a", 1))), 0);
    hear(&cache, Event::InitApply(thing("new", "n", 4)));
    assert_eq!(known(&cache), is("a", 1), "until the list is complete, the old state counts");
    // `old` went, `new` came, `web` stayed; `mine` was written before the list, and is not in it.
    assert_eq!(hear(&cache, Event::InitDone), 2);
    assert_eq!(cache.keys(), [key("new"), key("web")]);
    assert!(cache.get(&key("mine")).is_none());
}

#[test]
fn a_write_during_a_list_outlives_it() {
    let cache = Cache::default();
    hear(&cache, Event::Init);
    cache.wrote(thing("web", "a", 9));
    hear(&cache, Event::InitDone);
    assert_eq!(known(&cache), is("a", 9));
}

#[test]
fn a_list_of_one_namespace_says_nothing_about_others() {
    let cache = Cache::default();
    hear(&cache, Event::Apply(thing("web", "a", 1)));
    cache.absorb("other", Event::Init);
    assert_eq!(cache.absorb("other", Event::InitDone).len(), 0);
    assert_eq!(known(&cache), is("a", 1));
}
