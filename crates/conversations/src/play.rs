//! Plays a case and compares every answer with the recorded one.

use crate::case::{Case, Records};
use crate::compare::{Place, differences};
use crate::error::Error;
use crate::fixture::apply;
use crate::order::{calls_in_one_order, in_one_order, managers_in_one_order, without_hashes};
use crate::placeholders::Placeholders;
use crate::player::Player;
use crate::target::Target;

/// What went differently in one step.
#[derive(Debug)]
pub struct Difference {
    /// The step, counted from 1.
    pub step: usize,
    /// Its request.
    pub line: String,
    /// Where the answers differ.
    pub places: Vec<Place>,
}

/// What counts as equal though it is not.
pub struct Liberties<'a> {
    /// The steps in which every list of faults is a set.
    pub unordered: &'a (dyn Fn(usize) -> bool + Sync),
    /// Whether all hashes of Pod templates are equal.
    pub hashes: bool,
    /// Whether nobody asks for more than the first difference.
    pub brief: bool,
}

/// Plays a case in a fresh namespace and compares every answer with the recorded one.
/// `liberties` says what counts as equal though it is not.
pub async fn play(
    case: &Case,
    records: &Records,
    target: Target<'_>,
    namespace: &str,
    liberties: &Liberties<'_>,
) -> Result<Vec<Difference>, Error> {
    let mut player = Player::new(target, Placeholders::new(namespace));
    let played = play_steps(case, records, &mut player, liberties).await;
    player.finish().await?;
    played
}

async fn play_steps(
    case: &Case,
    records: &Records,
    player: &mut Player<'_>,
    liberties: &Liberties<'_>,
) -> Result<Vec<Difference>, Error> {
    for name in &case.needs {
        for object in records.fixture(name)? {
            apply(player.target(), object).await?;
        }
    }
    player.start_hooks(case).await?;
    let mut found = Vec::new();
    for (number, step) in (1..).zip(&case.steps) {
        let mut answered = player.step(step).await?;
        let mut recorded = step.got.clone();
        for document in [&mut answered, &mut recorded] {
            in_one_order(document, (liberties.unordered)(number));
            if step.called.as_ref().is_some_and(|called| called.aside) {
                calls_in_one_order(document);
            }
            // Where time is real, one run of a case crosses a second and another does not.
            if player.target().is_real() || case.needs_real_time() {
                managers_in_one_order(document);
            }
            if liberties.hashes {
                *document = without_hashes(document);
            }
        }
        let places = differences(&recorded, &player.placeholders().name(&answered, &recorded));
        if !places.is_empty() {
            found.push(Difference { step: number, line: step.line.clone(), places });
            if liberties.brief {
                break;
            }
        }
    }
    Ok(found)
}
