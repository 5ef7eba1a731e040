//! One conversation on two servers at once.

use serde_json::{Value, json};

use crate::case::Step;
use crate::compare::{Place, differences};
use crate::error::Error;
use crate::order::{in_one_order, managers_in_one_order};
use crate::placeholders::Placeholders;
use crate::player::Player;
use crate::target::Target;

/// What both servers answered to one step.
#[derive(Debug, Clone)]
pub struct Answers {
    /// What the real one answered, with names for what differs from run to run.
    pub real: Value,
    /// What the simulated one answered.
    pub simulated: Value,
    /// Where they differ.
    pub places: Vec<Place>,
}

/// A conversation that is played on a real and on a simulated server step by step.
pub struct Pair<'a> {
    real: Player<'a>,
    simulated: Player<'a>,
}

impl<'a> Pair<'a> {
    /// A conversation in a namespace that is fresh on both.
    #[must_use]
    pub fn new(real: Target<'a>, simulated: Target<'a>, namespace: &str) -> Self {
        let player = |target| Player::new(target, Placeholders::new(namespace).with_allocations());
        Self { real: player(real), simulated: player(simulated) }
    }

    /// Makes the namespace where it is not there yet.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        let mut create = Step::new("POST /api/v1/namespaces");
        create.body = Some(json!({ "metadata": { "name": "{ns}" } }));
        for player in [&mut self.real, &mut self.simulated] {
            player.step(&create).await?;
        }
        Ok(())
    }

    /// Gives back what servers have only so many of: the node ports of Services.
    pub(crate) async fn end(&mut self) -> Result<(), Error> {
        let services = Step::new("DELETE /api/v1/namespaces/{ns}/services");
        for player in [&mut self.real, &mut self.simulated] {
            player.step(&services).await?;
        }
        Ok(())
    }

    /// Plays one step on both.
    pub async fn step(&mut self, step: &Step) -> Result<Answers, Error> {
        // At once, since some answers take their time.
        let (mut real, mut simulated) =
            tokio::try_join!(self.real.step(step), self.simulated.step(step))?;
        for document in [&mut real, &mut simulated] {
            in_one_order(document, false);
            managers_in_one_order(document);
        }
        let real = self.real.placeholders().record(&real);
        let simulated = self.simulated.placeholders().name(&simulated, &real);
        let places = differences(&real, &simulated);
        Ok(Answers { real, simulated, places })
    }
}
