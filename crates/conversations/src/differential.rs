//! Conversations on a real and on a fresh simulated server at once.

use simcluster::cluster::SimCluster;
use simcluster::env::Cluster;

use crate::case::{Records, Step};
use crate::error::Error;
use crate::pair::{Answers, Pair};
use crate::target::Target;

/// Plays a conversation on a real cluster without controllers and on a simulated one, in a namespace
/// that is fresh on both, and returns what was answered, step by step.
pub async fn converse(
    cluster: &Cluster,
    records: &Records,
    fixture: &str,
    steps: &[Step],
) -> Result<Vec<Answers>, Error> {
    let simulated = SimCluster::builder().controllers(false).start().map_err(|error| {
        Error::Fixture { name: "the simulated cluster".to_owned(), fault: error.to_string() }
    })?;
    let namespace = cluster.namespace().await;
    let mut pair = Pair::new(Target::from(cluster), Target::Simulated(&simulated), &namespace);
    let objects = records.fixture(fixture)?;
    pair.prepare(&objects).await?;
    let mut answers = Vec::new();
    for step in steps {
        answers.push(pair.step(step).await?);
    }
    pair.release().await?;
    Ok(answers)
}
