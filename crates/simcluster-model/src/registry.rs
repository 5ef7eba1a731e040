//! The resources that a server has from the start.

use std::sync::{Arc, LazyLock};

use crate::builtin;
use crate::crd::DefinitionStrategy;
use crate::resource::{Resource, Strategy};

/// All built-in resources in discovery order: the core group first, then the others as a real server
/// orders them.
#[must_use]
pub fn built_in() -> &'static [Arc<Resource>] {
    static RESOURCES: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| {
        builtin::resources(|group, plural| {
            let definitions =
                (group, plural) == ("apiextensions.k8s.io", "customresourcedefinitions");
            definitions.then(|| -> Arc<dyn Strategy> { Arc::new(DefinitionStrategy) })
        })
    });
    &RESOURCES
}
