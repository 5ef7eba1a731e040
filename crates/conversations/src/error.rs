//! What can go wrong with a conversation, other than its answers.

use std::io;
use std::path::PathBuf;

/// Why a case cannot be read or played.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder that cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is no YAML.
    #[error("{} is no YAML: {fault}", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        fault: String,
    },
    /// A field that is not as it should be.
    #[error("{}: {field}: {fault}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The path of the field, such as `steps[2].until`.
        field: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A case that cannot be written as YAML.
    #[error("the case {id} cannot be written: {fault}")]
    Write {
        /// The case.
        id: String,
        /// Why.
        fault: String,
    },
    /// A step whose request is none.
    #[error("no request: {line}")]
    Request {
        /// Method and path.
        line: String,
        /// What is wrong with them, or with a header.
        source: http::Error,
    },
    /// A server that cannot be reached.
    #[error("the server cannot be reached")]
    Unreachable(#[source] io::Error),
    /// A webhook that cannot be started.
    #[error("a webhook cannot be started")]
    Webhook(#[source] io::Error),
    /// An answer that does not end, or breaks off.
    #[error("the answer to {line} cannot be read: {fault}")]
    Answer {
        /// Method and path of the request.
        line: String,
        /// What happened.
        fault: String,
    },
    /// A fixture that the server does not take.
    #[error("the fixture {name}: {fault}")]
    Fixture {
        /// The object's name.
        name: String,
        /// What was answered.
        fault: String,
    },
}
