//! Makes a conversation small that shows something.

use serde_json::Value;

use crate::case::Step;

/// The smallest conversation that was found to show what `shows` looks for, by leaving out steps and
/// parts of them. `tries` limits how often is looked.
pub async fn shrink(
    steps: &[Step],
    mut tries: usize,
    mut shows: impl AsyncFnMut(&[Step]) -> bool,
) -> Vec<Step> {
    let mut smallest = steps.to_vec();
    loop {
        let mut found = None;
        for candidate in candidates(&smallest) {
            if tries == 0 {
                break;
            }
            tries -= 1;
            if shows(&candidate).await {
                found = Some(candidate);
                break;
            }
        }
        match found {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

/// Conversations that are a little smaller, those that leave out most first.
fn candidates(steps: &[Step]) -> impl Iterator<Item = Vec<Step>> {
    let count = steps.len();
    let halves = std::iter::successors(Some(count / 2), |size| Some(size / 2))
        .take_while(|size| *size > 0)
        .flat_map(move |size| (0..count).step_by(size).map(move |start| start..start + size));
    let without = halves.map(move |left_out| {
        let kept = steps.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
        kept.map(|(_, step)| step.clone()).collect()
    });
    let with_smaller_steps = steps.iter().enumerate().flat_map(move |(index, step)| {
        smaller_steps(step).into_iter().map(move |smaller| {
            let mut steps = steps.to_vec();
            if let Some(place) = steps.get_mut(index) {
                *place = smaller;
            }
            steps
        })
    });
    without.filter(|steps: &Vec<Step>| !steps.is_empty()).chain(with_smaller_steps)
}

/// A step without one of its parts.
fn smaller_steps(step: &Step) -> Vec<Step> {
    let mut smaller = Vec::new();
    let mut add = |change: &dyn Fn(&mut Step)| {
        let mut changed = step.clone();
        change(&mut changed);
        smaller.push(changed);
    };
    if let Some((path, query)) = step.line.split_once('?') {
        let parameters: Vec<&str> = query.split('&').collect();
        for left_out in 0..parameters.len() {
            let kept = parameters.iter().enumerate().filter(|(index, _)| *index != left_out);
            let kept: Vec<&str> = kept.map(|(_, parameter)| *parameter).collect();
            let mark = if kept.is_empty() { "" } else { "?" };
            add(&|step| step.line = format!("{path}{mark}{}", kept.join("&")));
        }
    }
    if step.headers.contains_key("Accept") {
        add(&|step| drop(step.headers.remove("Accept")));
    }
    for name in step.save.keys() {
        add(&|step| drop(step.save.remove(name)));
    }
    if let Some(body) = &step.body {
        add(&|step| step.body = None);
        for body in smaller_values(body) {
            add(&|step| step.body = Some(body.clone()));
        }
    }
    if let Some(text) = &step.text {
        if let Ok(body) = serde_json::from_str::<Value>(text) {
            add(&|step| (step.text, step.body) = (None, Some(body.clone())));
        }
        for text in smaller_texts(text) {
            add(&|step| step.text = Some(text.clone()));
        }
    }
    smaller
}

/// A document without one of its parts, or with one of its lists and objects empty.
fn smaller_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(map) => {
            let without = map.keys().map(|key| {
                let mut map = map.clone();
                map.remove(key);
                Value::Object(map)
            });
            let with_smaller = map.iter().flat_map(|(key, value)| {
                smaller_values(value).into_iter().map(move |value| {
                    let mut map = map.clone();
                    map.insert(key.clone(), value);
                    Value::Object(map)
                })
            });
            without.chain(with_smaller).collect()
        }
        Value::Array(items) => {
            let without = (0..items.len()).map(|index| {
                let mut items = items.clone();
                items.remove(index);
                Value::Array(items)
            });
            let with_smaller = items.iter().enumerate().flat_map(|(index, item)| {
                smaller_values(item).into_iter().map(move |item| {
                    let mut items = items.clone();
                    if let Some(place) = items.get_mut(index) {
                        *place = item;
                    }
                    Value::Array(items)
                })
            });
            without.chain(with_smaller).collect()
        }
        Value::String(text) if text.len() > 40 => vec!["x".into()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// A text without one of its lines or, if it is one line, without a part of it.
fn smaller_texts(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let parts: Vec<&str> = if lines.len() > 1 {
        lines
    } else {
        text.split_inclusive(['{', '}', ',', '[', ']']).collect()
    };
    let sizes = std::iter::successors(Some(parts.len() / 2), |size| Some(size / 2));
    sizes
        .take_while(|size| *size > 0)
        .flat_map(|size| (0..parts.len()).step_by(size).map(move |start| start..start + size))
        .map(|left_out| {
            let kept = parts.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
            kept.map(|(_, part)| *part).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests;
