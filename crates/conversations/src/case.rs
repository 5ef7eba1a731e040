//! Cases as they stand in files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

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
    /// Requests and what was answered.
    pub steps: Vec<Step>,
}

/// One request and what a real server answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Method and path.
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
    /// The parts of the body that count; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pick: Vec<String>,
    /// Response headers that count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// What was answered.
    pub got: Value,
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
            line: line.into(),
            headers: BTreeMap::new(),
            body: None,
            text: None,
            save: BTreeMap::new(),
            until: BTreeMap::new(),
            events: None,
            seconds: EVENT_SECONDS,
            pick: Vec::new(),
            keep: Vec::new(),
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
        let steps: Vec<Value> = case.need("steps")?;
        let read = Self {
            id: case.need("id")?,
            rows: case.take("rows")?.unwrap_or_default(),
            title: case.need("title")?,
            needs: case.take("needs")?.unwrap_or_else(|| vec!["widgets".to_owned()]),
            steps: (1..)
                .zip(steps)
                .map(|(number, step)| Step::of(path, number, step))
                .collect::<Result<_, _>>()?,
        };
        case.end()?;
        Ok(read)
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
            line: step.need("do")?,
            headers: step.take("headers")?.unwrap_or_default(),
            body: step.take("body")?,
            text: step.take("text")?,
            save: step.take("save")?.unwrap_or_default(),
            until: step.take("until")?.unwrap_or_default(),
            events: step.take("events")?,
            seconds: step.take("seconds")?.unwrap_or(EVENT_SECONDS),
            pick: step.take("pick")?.unwrap_or_default(),
            keep: step.take("keep")?.unwrap_or_default(),
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

/// A folder with `cases` and the `fixtures` that they need.
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

    /// All cases in order of their names, or the one called `only`.
    pub fn cases(&self, only: Option<&str>) -> Result<Vec<Case>, Error> {
        let folder = self.folder.join("cases");
        let fault = |source| Error::File { path: folder.clone(), source };
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            if only.is_none_or(|id| path.file_stem().is_some_and(|stem| stem == id)) {
                files.push(path);
            }
        }
        files.sort();
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
