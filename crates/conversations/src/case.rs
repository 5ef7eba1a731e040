//! Cases as they stand in files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::hooks::Rule;

/// Seconds that a watch waits for its next event, unless a step says otherwise.
const EVENT_SECONDS: f64 = 2.0;

/// A conversation with an API server.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// The file's name, such as `CR01`; the letters name its group.
    pub id: String,
    /// What it shows, by the names of properties that others have written down.
    pub rows: Vec<String>,
    /// What it shows, in a line.
    pub title: String,
    /// Fixtures that are applied first.
    pub needs: Vec<String>,
    /// Whether the server that was asked had controllers. With webhooks it never had: they are called for
    /// what controllers write, too.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub controllers: bool,
    /// Webhooks by name; `{hook:NAME}` is the URL of one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, Vec<Rule>>,
    /// Webhooks that are called at once, in the order in which their calls are recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parallel: Vec<String>,
    /// Requests and what was answered.
    pub steps: Vec<Step>,
}

/// One request and what a real server answered; or a look at a stream that an earlier step left open.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Why it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Method and path, or `READ` or `CLOSE` and the name of a stream.
    #[serde(rename = "do")]
    pub line: String,
    /// Request headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A body that is sent as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How often it is sent, `{n}` counting from 1; the last answer counts.
    #[serde(skip_serializing_if = "is_once")]
    pub repeat: usize,
    /// Names for values of the answer, by dotted path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub save: BTreeMap<String, String>,
    /// The request is repeated until the answer has these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub until: BTreeMap<String, Value>,
    /// A watch: read so many events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<usize>,
    /// How long the next event may take.
    #[serde(skip_serializing_if = "is_usual")]
    pub seconds: f64,
    /// The name under which a watch stays open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// How much of its answer the kernel buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Whether it asks for a websocket.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub websocket: bool,
    /// The parts of the body that count; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pick: Vec<String>,
    /// Response headers that count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// What counts of the calls to webhooks; nothing if it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<Called>,
    /// What was answered.
    pub got: Value,
}

/// What counts of the calls to webhooks.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Called {
    /// The parts of the review; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pick: Vec<String>,
    /// Headers of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// The webhooks that count; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Whether equal calls count once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Whether no request waits for the calls: equal ones count once, and their order does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde wants")]
fn is_once(repeat: &usize) -> bool {
    *repeat == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde wants")]
fn is_usual(seconds: &f64) -> bool {
    seconds.total_cmp(&EVENT_SECONDS).is_eq()
}

impl Step {
    /// A request without headers and body, whose answer is not known yet.
    #[must_use]
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            note: None,
            line: line.into(),
            headers: BTreeMap::new(),
            body: None,
            text: None,
            repeat: 1,
            save: BTreeMap::new(),
            until: BTreeMap::new(),
            events: None,
            seconds: EVENT_SECONDS,
            open: None,
            window: None,
            websocket: false,
            pick: Vec::new(),
            keep: Vec::new(),
            called: None,
            got: Value::Null,
        }
    }
}

impl Case {
    /// Reads a case from a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read(path)?;
        let value: Value = serde_saphyr::from_str_with_options(&text, yaml())
            .map_err(|error| Error::Yaml { path: path.to_owned(), fault: error.to_string() })?;
        let mut case = Fields::of(path, "", value)?;
        let hooks = hooks(&mut case)?;
        let steps: Vec<Value> = case.need("steps")?;
        let read = Self {
            id: case.need("id")?,
            rows: case.take("rows")?.unwrap_or_default(),
            title: case.need("title")?,
            needs: case.take("needs")?.unwrap_or_else(|| vec!["widgets".to_owned()]),
            controllers: case.take("controllers")?.unwrap_or(hooks.is_empty()),
            hooks,
            parallel: case.take("parallel")?.unwrap_or_default(),
            steps: (1..)
                .zip(steps)
                .map(|(number, step)| Step::of(path, number, step))
                .collect::<Result<_, _>>()?,
        };
        case.end()?;
        Ok(read)
    }

    /// Whether it needs the machine's time: for connections, or for webhooks that are late.
    #[must_use]
    pub fn needs_real_time(&self) -> bool {
        self.steps.iter().any(|step| step.websocket || step.window.is_some())
            || self.hooks.values().flatten().any(|rule| rule.delay.is_some())
    }

    /// The case as its file has it.
    pub fn to_yaml(&self) -> Result<String, Error> {
        serde_saphyr::to_string(self)
            .map_err(|error| Error::Write { id: self.id.clone(), fault: error.to_string() })
    }
}

impl Step {
    fn of(path: &Path, number: usize, step: Value) -> Result<Self, Error> {
        let mut step = Fields::of(path, &format!("step {number}: "), step)?;
        let read = Self {
            note: step.take("note")?,
            line: step.need("do")?,
            headers: step.take("headers")?.unwrap_or_default(),
            body: step.take("body")?,
            text: step.take("text")?,
            repeat: step.take("repeat")?.unwrap_or(1),
            save: step.take("save")?.unwrap_or_default(),
            until: step.take("until")?.unwrap_or_default(),
            events: step.take("events")?,
            seconds: step.take("seconds")?.unwrap_or(EVENT_SECONDS),
            open: step.take("open")?,
            window: step.take("window")?,
            websocket: step.take("websocket")?.unwrap_or_default(),
            pick: step.take("pick")?.unwrap_or_default(),
            keep: step.take("keep")?.unwrap_or_default(),
            called: step.take("called")?,
            got: step.need("got")?,
        };
        if !read.line.contains(' ') {
            return Err(step.fault("do", "not a method and a path"));
        }
        if read.body.is_some() && read.text.is_some() {
            return Err(step.fault("text", "there is a body already"));
        }
        step.end()?;
        Ok(read)
    }
}

/// The webhooks of a case: a single rule may stand without a list.
fn hooks(case: &mut Fields<'_>) -> Result<BTreeMap<String, Vec<Rule>>, Error> {
    let hooks: BTreeMap<String, Value> = case.take("hooks")?.unwrap_or_default();
    let rules = |(name, rules): (String, Value)| {
        let rules = if rules.is_array() { rules } else { Value::Array(vec![rules]) };
        let rules = serde_json::from_value(rules);
        let rules = rules.map_err(|error| case.fault(&format!("hooks.{name}"), &error.to_string()));
        Ok((name, rules?))
    };
    hooks.into_iter().map(rules).collect()
}

/// The fields of an object of a file that were not read yet.
struct Fields<'a> {
    file: &'a Path,
    place: String,
    map: Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn of(file: &'a Path, place: &str, value: Value) -> Result<Self, Error> {
        let mut fields = Self { file, place: place.to_owned(), map: Map::new() };
        let Value::Object(map) = value else { return Err(fields.fault("", "not an object")) };
        fields.map = map;
        Ok(fields)
    }

    /// A field that may be missing. One that is `null` is there.
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.map.remove(name) else { return Ok(None) };
        let value = serde_json::from_value(value);
        value.map(Some).map_err(|error| self.fault(name, &error.to_string()))
    }

    fn need<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Error> {
        self.take(name)?.ok_or_else(|| self.fault(name, "missing"))
    }

    /// Nothing may be left.
    fn end(self) -> Result<(), Error> {
        match self.map.keys().next() {
            Some(name) => Err(self.fault(name, "no field of this name is known")),
            None => Ok(()),
        }
    }

    fn fault(&self, name: &str, fault: &str) -> Error {
        Error::Field {
            path: self.file.to_owned(),
            field: format!("{}{name}", self.place),
            fault: fault.to_owned(),
        }
    }
}

/// A folder with cases and the `fixtures` that they need.
#[derive(Debug, Clone)]
pub struct Records {
    folder: PathBuf,
}

impl Records {
    /// The records in a folder.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// All cases of some folders in order of their names, or those that `only` names, with commas between
    /// them. `cases` holds those that need a server only, `webhooks` those with webhooks and open streams.
    pub fn cases(&self, folders: &[&str], only: Option<&str>) -> Result<Vec<Case>, Error> {
        let mut files = Vec::new();
        for folder in folders.iter().map(|folder| self.folder.join(folder)) {
            let fault = |source| Error::File { path: folder.clone(), source };
            for entry in fs::read_dir(&folder).map_err(fault)? {
                let path = entry.map_err(fault)?.path();
                let named = |id: &str| path.file_stem().is_some_and(|stem| stem == id);
                if only.is_none_or(|ids| ids.split(',').any(named)) {
                    files.push(path);
                }
            }
        }
        files.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
        files.iter().map(|path| Case::read(path)).collect()
    }

    /// The objects of one fixture, each with `x-path`, the collection it belongs to.
    pub fn fixture(&self, name: &str) -> Result<Vec<Value>, Error> {
        let path = self.folder.join("fixtures").join(format!("{name}.yaml"));
        let text = read(&path)?;
        serde_saphyr::from_multiple_with_options(&text, yaml())
            .map_err(|error| Error::Yaml { path, fault: error.to_string() })
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// The cases were written by a YAML library to which `y`, `n` and `0123456789` are texts.
fn yaml() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true, leading_zero_numbers_as_strings: true }
}

#[cfg(test)]
mod tests;
