//! Objects in memory: what was written or read lately is there as a value, all else as text, which takes
//! about a seventh of the memory.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;

/// Memory that values may take before the oldest become texts, in bytes. A cluster of some thousand objects
/// fits.
const VALUES_BYTES_MAX: usize = 96 << 20;

/// Values that are nested deeper than this stay values: the reader of texts has a limit.
const DEPTH_MAX: usize = 100;

/// An object as it is kept.
#[derive(Debug)]
pub(super) struct Kept {
    form: Mutex<Form>,
    /// What it takes as a value, in bytes.
    pub(super) bytes: usize,
    /// Whether its text says all of it.
    is_plain: bool,
}

#[derive(Debug)]
enum Form {
    Value(Arc<Value>),
    /// With the value that was last made of it, so that all who hold it hold the same one: writers compare
    /// by address.
    Text(Box<str>, Weak<Value>),
}

impl Kept {
    fn new(value: Arc<Value>) -> Self {
        let Measure { bytes, is_plain } = Measure::of(&value, 0);
        Self { form: Mutex::new(Form::Value(value)), bytes, is_plain }
    }

    fn form(&self) -> MutexGuard<'_, Form> {
        self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object.
    pub(super) fn value(&self) -> Arc<Value> {
        match &mut *self.form() {
            Form::Value(value) => Arc::clone(value),
            Form::Text(text, last) => last.upgrade().unwrap_or_else(|| {
                let value = Arc::new(read(text));
                *last = Arc::downgrade(&value);
                value
            }),
        }
    }

    /// Makes a text of it.
    fn cool(&self) {
        let mut form = self.form();
        if let Form::Value(value) = &*form
            && self.is_plain
        {
            *form = Form::Text(value.to_string().into(), Arc::downgrade(value));
        }
    }

    /// Makes a value of it, if it was a text, and answers that.
    fn warm(&self) -> Option<Arc<Value>> {
        let mut form = self.form();
        let Form::Text(text, last) = &*form else { return None };
        let value = last.upgrade().unwrap_or_else(|| Arc::new(read(text)));
        *form = Form::Value(Arc::clone(&value));
        Some(value)
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("the text of a value that is not nested too deeply")
}

/// Objects that are values now, in the order in which they became that.
#[derive(Debug, Default)]
pub(super) struct Warm(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    /// With what each took when it came in.
    objects: VecDeque<(Weak<Kept>, usize)>,
    bytes: usize,
}

impl Warm {
    /// Takes a new object in.
    pub(super) fn keep(&self, value: Arc<Value>) -> Arc<Kept> {
        let kept = Arc::new(Kept::new(value));
        self.add(&kept);
        kept
    }

    /// An object that somebody looks for by itself: he will often do so again.
    pub(super) fn read(&self, kept: &Arc<Kept>) -> Arc<Value> {
        let Some(value) = kept.warm() else { return kept.value() };
        self.add(kept);
        value
    }

    fn add(&self, kept: &Arc<Kept>) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.bytes += kept.bytes;
        queue.objects.push_back((Arc::downgrade(kept), kept.bytes));
        while queue.bytes > VALUES_BYTES_MAX
            && let Some((oldest, bytes)) = queue.objects.pop_front()
        {
            queue.bytes -= bytes;
            if let Some(oldest) = oldest.upgrade() {
                oldest.cool();
            }
        }
    }
}

/// What is to be known of a value before it becomes a text.
struct Measure {
    /// About how many bytes it takes beyond its own size.
    bytes: usize,
    /// Whether its text says all of it: floats may be read a little smaller or larger than they were
    /// written.
    is_plain: bool,
}

impl Measure {
    /// Maps are B-trees, whose nodes have room for eleven entries and are at least half full.
    fn of(value: &Value, depth: usize) -> Self {
        const NODE: usize = 11 * (size_of::<String>() + size_of::<Value>());
        let mut measure = Self { bytes: 0, is_plain: depth < DEPTH_MAX };
        let mut add = |part: &Value, beside: usize| {
            let Self { bytes, is_plain } = Self::of(part, depth + 1);
            measure.bytes += bytes + beside;
            measure.is_plain &= is_plain;
        };
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => measure.is_plain &= !number.is_f64(),
            Value::String(text) => measure.bytes = text.capacity(),
            Value::Array(list) => {
                for item in list {
                    add(item, 0);
                }
                measure.bytes += list.capacity() * size_of::<Value>();
            }
            Value::Object(map) => {
                for (key, value) in map {
                    add(value, key.capacity());
                }
                measure.bytes += map.len().div_ceil(8) * NODE;
            }
        }
        measure
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(number: usize) -> Arc<Value> {
        Arc::new(json!({ "metadata": { "name": number.to_string() }, "data": "x".repeat(1 << 20) }))
    }

    fn is_text(kept: &Kept) -> bool {
        matches!(&*kept.form(), Form::Text(..))
    }

    #[test]
    fn the_oldest_values_become_texts_and_are_the_same_when_read() {
        let warm = Warm::default();
        let all: Vec<Arc<Kept>> = (0..200).map(|number| warm.keep(object(number))).collect();
        assert!(is_text(&all[0]) && is_text(&all[60]) && !is_text(&all[199]));
        assert_eq!(all.iter().filter(|kept| !is_text(kept)).count(), 95, "96 MiB");
        let first = all[0].value();
        assert_eq!(first, object(0));
        assert!(Arc::ptr_eq(&first, &all[0].value()), "as long as somebody holds it");
        assert!(is_text(&all[0]), "it was one of many that were read");
        assert!(Arc::ptr_eq(&first, &warm.read(&all[0])));
        assert!(!is_text(&all[0]), "it was looked for by itself");
    }

    #[test]
    fn what_was_held_when_it_became_a_text_is_the_same() {
        let kept = Kept::new(object(1));
        let held = kept.value();
        kept.cool();
        assert!(is_text(&kept) && Arc::ptr_eq(&held, &kept.value()));
    }

    #[test]
    fn what_a_text_would_not_say_stays_a_value() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        for value in [json!({ "float": 0.1 }), deep] {
            let kept = Kept::new(Arc::new(value.clone()));
            kept.cool();
            assert!(!is_text(&kept), "{value}");
        }
    }
}
