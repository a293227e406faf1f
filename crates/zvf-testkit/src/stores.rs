//! Random stores with known content, in memory.
//!
//! A [`Recipe`] describes a store; [`make`] returns its files and an [`ExpectedStore`], its known
//! content. Equal recipes give equal stores. [`wide`] makes a store of many chunks.
//!
//! ```
//! use zvf_testkit::stores::{StoreKind, Recipe, make};
//!
//! let made = make(&Recipe { seed: 7, kind: StoreKind::Graph, ..Recipe::default() });
//! assert!(made.files.iter().any(|(key, _)| key == "0/vertices/zarr.json"));
//! assert!(!made.truth.vertices.is_empty());
//! ```

mod columns;
mod convention;
mod current;
mod files;
mod kinds;
mod layers;
mod links;
mod numbers;
mod older;
mod parts;
mod pyramid;
mod random;
mod recipe;
mod runs;
mod sketch;
mod truth;
mod wide;

pub use convention::as_convention;
pub use layers::{Layers, layers};
pub use pyramid::{Pyramid, PyramidLinks, pyramid};
pub use random::Random;
pub use recipe::{Cells, Recipe, RecipeProfile, RecordPolicy, StoreKind};
pub use truth::{
    ExpectedAttribute, ExpectedFragment, ExpectedStore, ExpectedValues, Link, Object, Vertex,
};
pub use wide::wide;

/// A generated store.
#[derive(Debug)]
pub struct Made {
    /// Its files: key and bytes.
    pub files: Vec<(String, Vec<u8>)>,
    /// Its content.
    pub truth: ExpectedStore,
}

/// Generates the store of the nearest [possible](Recipe::possible) recipe.
pub fn make(recipe: &Recipe) -> Made {
    let (truth, files) = finest(recipe);
    Made {
        files: files.finish_as(truth.recipe.profile),
        truth,
    }
}

/// Generates level 0 of a store.
fn finest(recipe: &Recipe) -> (ExpectedStore, files::Files) {
    let recipe = recipe.clone().possible();
    let mut random = Random::new(recipe.seed);
    let space = sketch::Space::new(&recipe, &mut random);
    let sketch = kinds::sketch(&recipe, &space, &mut random);
    let mut truth = sketch.finish(&recipe, space, &mut random);
    let mut files = files::Files::new(recipe.cells, random);
    files.group("", &parts::root(&truth));
    if recipe.profile.is_current() {
        files.group("0", &current::level(&truth));
        current::write(&mut truth, &mut files);
    } else {
        files.group("0", &parts::level(&truth));
        older::write(&mut truth, &mut files);
    }
    (truth, files)
}
