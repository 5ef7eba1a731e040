//! Paths of fields, kept as a chain on the stack and written out only when a fault needs one.

use std::fmt::Write as _;

/// A place in an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// Whether this is the object itself.
    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// A declared field.
    pub(crate) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// A key of a map.
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// An item of a list.
    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// As `field.Path` writes it: keys of maps in brackets, `<nil>` for the root.
    pub(crate) fn bracketed(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        if text.is_empty() { "<nil>".to_owned() } else { text }
    }

    /// As kube-openapi writes it: keys of maps after a dot, empty for the root.
    pub(crate) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    /// As a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let mut text = self.parent.map(Self::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) | Step::Key(name) => {
                text.push('/');
                text.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Step::Index(index) => {
                let _ = write!(text, "/{index}");
            }
        }
        text
    }

    fn write(&self, text: &mut String, brackets: bool) {
        if let Some(parent) = self.parent {
            parent.write(text, brackets);
        }
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Key(key) if brackets => {
                text.push('[');
                text.push_str(key);
                text.push(']');
            }
            Step::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Step::Index(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
    }
}
