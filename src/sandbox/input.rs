//! The apps that a user names on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::api::simpleapp::{self, GROUP, KIND, SimpleApp, VERSION};

/// An app, and the file that it came from.
#[derive(Debug, Clone)]
pub(super) struct Input {
    /// The file, for messages.
    pub(super) source: String,
    /// The app; its namespace is set.
    pub(super) app: SimpleApp,
}

/// Why a file cannot be used; says where and what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{file}:{line}: {field}{why}")]
    Malformed { file: String, line: usize, field: String, why: String },
    #[error(
        "{file}: no {KIND} in it; a document must say `apiVersion: {GROUP}/{VERSION}` and `kind: {KIND}`"
    )]
    Empty { file: String },
}

/// What every document must say.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

/// The three litmus samples, for a sandbox without files.
const SAMPLES: [(&str, &str); 3] = [
    (
        "fixtures/litmus-1-image-only/simpleapp.yaml",
        include_str!("../../fixtures/litmus-1-image-only/simpleapp.yaml"),
    ),
    (
        "fixtures/litmus-2-replicas-port/simpleapp.yaml",
        include_str!("../../fixtures/litmus-2-replicas-port/simpleapp.yaml"),
    ),
    (
        "fixtures/litmus-3-all-fields/simpleapp.yaml",
        include_str!("../../fixtures/litmus-3-all-fields/simpleapp.yaml"),
    ),
];

/// Reads the files; without any, the litmus samples.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Input>, InputError> {
    let mut inputs = Vec::new();
    if files.is_empty() {
        for (file, text) in SAMPLES {
            inputs.extend(parse(file, text)?);
        }
    }
    for path in files {
        inputs.extend(parse(&path.display().to_string(), &text_of(path)?)?);
    }
    Ok(inputs)
}

fn text_of(path: &Path) -> Result<String, InputError> {
    fs::read_to_string(path)
        .map_err(|source| InputError::Unreadable { path: path.to_owned(), source })
}

/// The apps of one file, which may hold several documents.
fn parse(file: &str, text: &str) -> Result<Vec<Input>, InputError> {
    let mut inputs = Vec::new();
    for (first_line, document) in documents(text) {
        let input = one(file, first_line, &document)?;
        inputs.push(input);
    }
    if inputs.is_empty() {
        return Err(InputError::Empty { file: file.to_owned() });
    }
    Ok(inputs)
}

/// The documents of a YAML text that hold something, each with the number of its first line.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(1, String::new())];
    for (index, line) in text.lines().enumerate() {
        if line.trim_end() == "---" {
            documents.push((index + 2, String::new()));
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let holds = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    documents.retain(|(_, document)| document.lines().any(holds));
    documents
}

fn one(file: &str, first_line: usize, document: &str) -> Result<Input, InputError> {
    let malformed = |error: &serde_saphyr::Error| malformed(file, first_line, document, error);
    let header: Header = serde_saphyr::from_str(document).map_err(|error| malformed(&error))?;
    let at_start = |field: &str, why: String| InputError::Malformed {
        file: file.to_owned(),
        line: first_line,
        field: format!("{field}: "),
        why,
    };
    if header.kind != KIND {
        let why = format!("is {:?}, but the sandbox runs only {KIND}s", header.kind);
        return Err(at_start("kind", why));
    }
    let expected = format!("{GROUP}/{VERSION}");
    if header.api_version != expected {
        return Err(at_start("apiVersion", format!("is {:?}, not {expected}", header.api_version)));
    }
    let mut app: SimpleApp = serde_saphyr::from_str(document).map_err(|error| malformed(&error))?;
    if app.metadata.name.as_deref().unwrap_or_default().is_empty() {
        let why = "is missing; every app needs a name, and generateName makes another each time";
        return Err(at_start("metadata.name", why.to_owned()));
    }
    if let Some((line, field)) = unknown_field(document) {
        return Err(InputError::Malformed {
            file: file.to_owned(),
            line: first_line + line,
            field: format!("spec.{field}: "),
            why: "is not a field of a SimpleApp".to_owned(),
        });
    }
    app.metadata.namespace.get_or_insert_with(|| "default".to_owned());
    Ok(Input { source: file.to_owned(), app })
}

/// The first field of the spec that the schema does not know, and its line, counted from 0. The API
/// server would drop it, as it does for all but strict clients such as kubectl.
fn unknown_field(document: &str) -> Option<(usize, String)> {
    let document_value: Value = serde_saphyr::from_str(document).ok()?;
    let definition = serde_json::to_value(simpleapp::definition()).ok()?;
    let known = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties")?
        .as_object()?;
    let spec = document_value.get("spec")?.as_object()?;
    let field = spec.keys().find(|field| !known.contains_key(*field))?;
    let line = document.lines().position(|line| line.contains(&format!("{field}:")));
    Some((line.unwrap_or_default(), field.clone()))
}

/// The parser knows the line; the field is what stands there.
fn malformed(
    file: &str,
    first_line: usize,
    document: &str,
    error: &serde_saphyr::Error,
) -> InputError {
    let line = error
        .location()
        .and_then(|location| usize::try_from(location.line()).ok())
        .unwrap_or(1)
        .max(1);
    let key = document.lines().nth(line - 1).and_then(|text| text.split_once(':'));
    let field = key.map(|(key, _)| format!("{}: ", key.trim().trim_start_matches("- ")));
    let text = error.to_string();
    let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    InputError::Malformed {
        file: file.to_owned(),
        line: first_line + line - 1,
        field: field.unwrap_or_default(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = parse("app.yaml", text).unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with(expected), "{shown:?} does not start with {expected:?}");
    }

    const HEAD: &str = "apiVersion: apps.bootcamp.local/v1\nkind: SimpleApp\n";

    #[test]
    fn the_samples_are_apps() {
        assert_eq!(read(&[]).unwrap().len(), 3);
    }

    #[test]
    fn a_wrong_type_is_named_by_line_and_field() {
        let text =
            format!("{HEAD}metadata: {{name: a}}\nspec:\n  image: nginx\n  replicas: three\n");
        check(&text, "app.yaml:6: replicas: ");
    }

    #[test]
    fn lines_count_through_documents() {
        let good = format!("{HEAD}metadata: {{name: a}}\nspec: {{image: nginx}}\n");
        let text =
            format!("{good}---\n# the next\n{HEAD}metadata: {{name: b}}\nspec:\n  image: [1]\n");
        check(&text, "app.yaml:11: image: ");
    }

    #[test]
    fn an_unknown_field_is_named() {
        let text = format!("{HEAD}metadata: {{name: a}}\nspec:\n  image: nginx\n  replica: 3\n");
        check(&text, "app.yaml:6: spec.replica: ");
    }

    #[test]
    fn an_app_needs_a_name_of_its_own() {
        let text = format!("{HEAD}metadata: {{generateName: a-}}\nspec: {{image: nginx}}\n");
        check(&text, "app.yaml:1: metadata.name: ");
    }

    #[test]
    fn other_kinds_are_refused() {
        check("apiVersion: v1\nkind: Pod\n", "app.yaml:1: kind: ");
        check("# nothing\n---\n", "app.yaml: no SimpleApp in it");
    }

    #[test]
    fn a_missing_image_is_named() {
        let text = format!("{HEAD}metadata: {{name: a}}\nspec:\n  port: 80\n");
        let error = parse("app.yaml", &text).unwrap_err();
        assert!(error.to_string().contains("image"), "{error}");
    }
}
