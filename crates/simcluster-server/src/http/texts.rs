//! Texts of stored objects, each made once and shared by all lists and watches that show it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use simcluster_model::resource::Resource;

/// Memory that texts may take, in bytes. It is to hold what many watchers are shown at about the same
/// time, and the lists of a cluster of some thousand objects.
const BYTES_MAX: usize = 16 << 20;

/// What a text takes beside its characters, in bytes.
const TEXT_BYTES: usize = 256;

/// A shared store of texts; the oldest go when there are too many.
#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    texts: BTreeMap<Id, Text>,
    order: VecDeque<Id>,
    bytes: usize,
}

/// Identifies a text: addresses of the stored object and of the resource in whose version it is shown,
/// the revision that it is given (0: its own), and the form.
type Id = (usize, usize, u64, TextForm);

/// A text, with what keeps the addresses in its identity from being used again.
#[derive(Debug)]
struct Text {
    bytes: Bytes,
    _stored: Arc<Value>,
    _resource: Arc<Resource>,
}

/// The forms in which texts are shared: those that depend on nothing but the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextForm {
    /// An item of a list.
    Item,
    /// A line of a watch: the type of the event, and the version of the metadata if it shows only that.
    Line(&'static str, Option<&'static str>),
}

impl Texts {
    /// The text of an object in a form; `write` makes it if it is not there yet.
    pub(super) fn of(
        &self,
        (stored, resource, revision): (&Arc<Value>, &Arc<Resource>, Option<u64>),
        form: TextForm,
        write: impl FnOnce() -> Bytes,
    ) -> Bytes {
        let addresses = (Arc::as_ptr(stored).addr(), Arc::as_ptr(resource).addr());
        let id = (addresses.0, addresses.1, revision.unwrap_or_default(), form);
        if let Some(known) = self.lock().texts.get(&id) {
            return known.bytes.clone();
        }
        let text = write();
        let kept = Text {
            bytes: text.clone(),
            _stored: Arc::clone(stored),
            _resource: Arc::clone(resource),
        };
        self.lock().add(id, kept);
        text
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, id: Id, text: Text) {
        self.bytes += TEXT_BYTES + text.bytes.len();
        self.order.push_back(id);
        // Somebody else may have made the same text meanwhile.
        if let Some(same) = self.texts.insert(id, text) {
            self.bytes -= TEXT_BYTES + same.bytes.len();
            self.order.pop_back();
        }
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(text) = self.texts.remove(&oldest) {
                self.bytes -= TEXT_BYTES + text.bytes.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;
    use simcluster_model::registry;

    use super::*;

    #[test]
    fn a_text_is_written_once_and_the_oldest_go() {
        let texts = Texts::default();
        let resource = registry::built_in().first().unwrap();
        let written = Cell::new(0);
        let show = |stored: &Arc<Value>, form: TextForm| {
            texts.of((stored, resource, None), form, || {
                written.set(written.get() + 1);
                Bytes::from(vec![b' '; 1 << 20])
            })
        };
        let first = Arc::new(json!({ "number": 0 }));
        show(&first, TextForm::Item);
        show(&first, TextForm::Item);
        assert_eq!(written.get(), 1, "it is shared");
        show(&first, TextForm::Line("ADDED", None));
        show(&Arc::new(Value::clone(&first)), TextForm::Item);
        assert_eq!(written.get(), 3, "neither another form nor another object is the same");
        for number in 0..40 {
            show(&Arc::new(json!(number)), TextForm::Item);
        }
        let kept = texts.lock();
        assert!(kept.bytes <= BYTES_MAX && kept.texts.len() == kept.order.len());
        drop(kept);
        show(&first, TextForm::Item);
        assert_eq!(written.get(), 44, "it was among the oldest");
    }
}
