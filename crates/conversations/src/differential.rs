//! A real and a simulated server, to hold conversations on both at once.

use serde_json::Value;
use simcluster::SimCluster;
use simcluster::env::Cluster;

use crate::case::Step;
use crate::error::Error;
use crate::pair::{Answers, Pair};

use crate::fixture::apply;
use crate::remote::Remote;
use crate::target::Target;

/// Two servers on which nobody acts but who talks to them.
pub struct Servers<'a> {
    cluster: &'a Cluster,
    real: Remote,
    simulated: SimCluster,
}

impl<'a> Servers<'a> {
    /// A real cluster without controllers and a new simulated one, both with a fixture.
    pub async fn start(cluster: &'a Cluster, fixture: &[Value]) -> Result<Self, Error> {
        let simulated =
            SimCluster::builder().controllers(false).warn_of_idle_kinds(false).start().map_err(
                |error| Error::Fixture {
                    name: "the simulated cluster".to_owned(),
                    fault: error.to_string(),
                },
            )?;
        let servers = Self { cluster, real: Remote::of(cluster).await?, simulated };
        for target in servers.targets() {
            for object in fixture {
                apply(&target, object.clone()).await?;
            }
        }
        Ok(servers)
    }

    fn targets(&self) -> [Target<'_>; 2] {
        [Target::Real(self.real.clone()), Target::simulated(&self.simulated)]
    }

    /// Plays a conversation in a namespace that is fresh on both, and returns what was answered, step
    /// by step.
    pub async fn converse(&self, steps: &[Step]) -> Result<Vec<Answers>, Error> {
        let namespace = self.cluster.namespace().await;
        let [real, simulated] = self.targets();
        let mut pair = Pair::new(real, simulated, &namespace);
        pair.begin().await?;
        let mut answers = Vec::new();
        for step in steps {
            answers.push(pair.step(step).await?);
        }
        pair.end().await?;
        Ok(answers)
    }
}
