//! Sampling as JSON, for processes that share it.

use serde_json::{Value, json};

use super::{Affine, Interpolation, Outside, SampleOptions};

/// A volume and the options of sampling it.
///
/// ```
/// use zvf_dense::sample::{SampleOptions, SampleRecipe};
///
/// let recipe = SampleRecipe::new("/data/t1.npy", SampleOptions::default());
/// assert_eq!(SampleRecipe::from_json(&recipe.to_json()), Some(recipe));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SampleRecipe {
    /// Path or address of the volume.
    pub volume: String,
    /// Dataset of the volume; `None` if it has only one.
    pub dataset: Option<String>,
    /// Options of the sampler.
    pub options: SampleOptions,
}

impl SampleRecipe {
    /// Creates the recipe of a volume with one dataset.
    pub fn new(volume: impl Into<String>, options: SampleOptions) -> Self {
        Self {
            volume: volume.into(),
            dataset: None,
            options,
        }
    }

    /// Returns the recipe as JSON.
    pub fn to_json(&self) -> Value {
        let affine = self.options.affine.as_ref().map(Affine::rows);
        // JSON has no NaN.
        let outside = self.options.outside.map(|outside| match outside {
            Outside::Fill(value) => value.to_string(),
            Outside::Edge => "edge".to_owned(),
        });
        json!({
            "volume": self.volume,
            "dataset": self.dataset,
            "interpolation": self.options.interpolation.name(),
            "affine": affine,
            "outside": outside,
            "budget": self.options.budget,
        })
    }

    /// Parses the output of [`to_json`](Self::to_json); `None` if the JSON is not a recipe.
    pub fn from_json(json: &Value) -> Option<Self> {
        let member = |name: &str| json.get(name);
        let optional = |name: &str| member(name).filter(|value| !value.is_null());
        let interpolation = member("interpolation")?.as_str()?;
        let mut methods = Interpolation::ALL.into_iter();
        Some(Self {
            volume: member("volume")?.as_str()?.to_owned(),
            dataset: match optional("dataset") {
                None => None,
                Some(name) => Some(name.as_str()?.to_owned()),
            },
            options: SampleOptions {
                interpolation: methods.find(|known| known.name() == interpolation)?,
                affine: match optional("affine") {
                    None => None,
                    Some(rows) => Some(affine(rows)?),
                },
                outside: match optional("outside") {
                    None => None,
                    Some(value) => Some(match value.as_str()? {
                        "edge" => Outside::Edge,
                        number => Outside::Fill(number.parse().ok()?),
                    }),
                },
                budget: match optional("budget") {
                    None => None,
                    Some(bytes) => Some(bytes.as_u64()?),
                },
            },
        })
    }
}

/// Parses the rows of a matrix without the last one.
fn affine(rows: &Value) -> Option<Affine> {
    let rows = rows.as_array()?.iter().map(Value::as_f64);
    let mut numbers = rows.collect::<Option<Vec<f64>>>()?;
    // The last row of n + 1 numbers is not among the n rows.
    let axes = (1..=super::MAX_AXES)
        .find(|axes| axes.saturating_mul(axes.saturating_add(1)) == numbers.len())?;
    numbers.resize(numbers.len().saturating_add(axes), 0.0);
    numbers.push(1.0);
    Affine::of(&numbers).ok()
}
