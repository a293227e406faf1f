//! Processes killed while they build pyramid levels.

use std::collections::BTreeMap;

use zvf::{
    CreateOptions, Editor, Error, OpenOptions, PyramidLevels, PyramidOptions, Store, build_pyramid,
};
use zvf_build::{GeometryKind, Profile};

use super::{
    child::{self, End},
    kills::{KillTime, nothing_left},
    place::{Files, Place},
    state::State,
};
use crate::{
    block_on,
    pyramids::random::wanted,
    validated::own::is_sound,
    written::random::{self, Case},
};

/// Number of kills per store in CI, spread evenly over its operations.
const KILLS: u64 = 8;

/// A random store of a kind and the levels to build.
struct Build {
    kind: GeometryKind,
    seed: u64,
}

impl Build {
    /// Returns the first store with few vertices that gets two levels.
    fn first(kind: GeometryKind) -> Self {
        let builds = (0..).map(|seed| Self { kind, seed });
        let suits = |build: &Self| {
            let case = random::case(build.seed, kind, Profile::V09);
            let is_small = (4..16).contains(&case.geometry.vertices());
            is_small && case.design.chunk_shape.is_some() && build.designs() == 2
        };
        let mut builds = builds.filter(suits);
        builds.next().unwrap()
    }

    fn options(&self) -> PyramidOptions {
        block_on(wanted(self.seed, self.kind, Profile::V09)).options
    }

    fn designs(&self) -> usize {
        match self.options().levels {
            PyramidLevels::Explicit(levels) => levels.len(),
            PyramidLevels::Auto(_) => 0,
        }
    }

    /// Returns a place with the store and this many levels.
    fn place(&self, store: &Files, levels: usize) -> Place {
        let place = Place::folder();
        block_on(place.fill(store));
        let mut options = self.options();
        if let PyramidLevels::Explicit(designs) = &mut options.levels {
            designs.truncate(levels);
        }
        block_on(build_pyramid(&place.address(), &options)).unwrap();
        place
    }
}

/// Runs the job of the child process.
pub(super) async fn perform(word: &str, address: &str, open: &OpenOptions) -> Result<(), Error> {
    let (kind, seed) = word.split_once('/').unwrap();
    let mut kinds = GeometryKind::ALL.into_iter();
    let kind = kinds.find(|own| own.name() == kind).unwrap();
    let mut options = wanted(seed.parse().unwrap(), kind, Profile::V09)
        .await
        .options;
    options.open = open.clone();
    build_pyramid(address, &options).await.map(drop)
}

async fn files(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let store = OpenOptions::default().open(&place.address()).unwrap();
    State::files(&store).await.unwrap()
}

/// The store holds exactly the completed levels, and a second build continues after them with the
/// same result.
#[test]
fn a_killed_build_leaves_complete_levels_and_can_be_continued() {
    for kind in GeometryKind::ALL {
        let build = Build::first(kind);
        let about = format!("{kind:?}, seed {}", build.seed);
        let job = format!("levels/{}/{}", kind.name(), build.seed);
        let first = Place::folder();
        let Case {
            geometry, design, ..
        } = random::case(build.seed, kind, Profile::V09);
        let (address, options) = (first.address(), CreateOptions::default());
        block_on(zvf::create(
            &address,
            geometry.build().unwrap(),
            design,
            &options,
        ))
        .unwrap();
        let store = first.files();
        let states: Vec<_> = (0..=2)
            .map(|levels| block_on(files(&build.place(&store, levels))))
            .collect();
        let whole = Place::folder();
        block_on(whole.fill(&store));
        let End::Done { calls, .. } = child::run_job(&job, KillTime::Never, &whole.address())
        else {
            panic!("killed by another process")
        };
        assert!(block_on(files(&whole)) == states[2], "{about}");
        let mut seen = [0; 3];
        let kills = usize::try_from(zvf_testkit::sample::cases(KILLS))
            .unwrap()
            .min(calls);
        for kill in 1..=kills {
            let at = (kill * calls).div_ceil(kills);
            let place = Place::folder();
            block_on(place.fill(&store));
            let end = child::run_job(&job, KillTime::At(at), &place.address());
            assert_eq!(end, End::Killed, "{about}, at {at}");
            let found = block_on(files(&place));
            let levels = states
                .iter()
                .position(|state| *state == found)
                .unwrap_or_else(|| panic!("half of a level: {about}, killed at {at}"));
            seen[levels] += 1;
            let options = build.options();
            let again = block_on(async {
                let store = Store::open(&place.address()).unwrap();
                if kill % 5 == 0 {
                    is_sound(&store, &about).await;
                }
                build_pyramid(&place.address(), &options).await.unwrap()
            });
            assert_eq!(again.existing as usize, levels, "{about}, killed at {at}");
            assert!(block_on(files(&place)) == states[2], "{about}, at {at}");
            // If no level was missing, the next writer finishes the transaction.
            let open = OpenOptions::default();
            block_on(Editor::open_with(&place.address(), &open)).unwrap();
            block_on(nothing_left(&place));
        }
        assert!(!seen.contains(&0), "{about}: {seen:?}");
    }
}
