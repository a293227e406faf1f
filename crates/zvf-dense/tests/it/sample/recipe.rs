//! Recipes as JSON.

use serde_json::{Value, json};
use zvf_dense::sample::{Affine, Interpolation, Outside, SampleOptions, SampleRecipe};

#[test]
fn recipes_are_equal_after_json() {
    let rows = [0.1, -2.0, 1.0 / 3.0, 4.0, 5.0, 6e-300];
    let affine = Affine::of(&[&rows[..], &[0.0, 0.0, 1.0]].concat()).unwrap();
    for outside in [None, Some(Outside::Edge), Some(Outside::Fill(-0.1))] {
        let mut recipe = SampleRecipe::new("s3://bucket/t1.tet", SampleOptions::default());
        recipe.dataset = Some("t1".to_owned());
        recipe.options = SampleOptions {
            interpolation: Interpolation::Cubic,
            affine: Some(affine.clone()),
            outside,
            budget: Some(1 << 40),
        };
        let text = recipe.to_json().to_string();
        let json = serde_json::from_str(&text).unwrap();
        assert_eq!(SampleRecipe::from_json(&json), Some(recipe));
    }
}

#[test]
fn other_json_is_not_a_recipe() {
    let recipe = SampleRecipe::new("a.npy", SampleOptions::default()).to_json();
    for (member, value) in [
        ("volume", Value::Null),
        ("interpolation", json!("smooth")),
        ("affine", json!([1.0, 2.0, 3.0])),
        ("affine", json!("eye")),
        ("outside", json!("far")),
        ("budget", json!(-1)),
        ("dataset", json!(1)),
    ] {
        let mut wrong = recipe.clone();
        wrong[member] = value;
        assert_eq!(SampleRecipe::from_json(&wrong), None, "{member}");
    }
    assert_eq!(SampleRecipe::from_json(&json!([])), None);
}

#[test]
fn nan_is_kept() {
    let mut recipe = SampleRecipe::new("a.npy", SampleOptions::default());
    recipe.options.outside = Some(Outside::Fill(f64::NAN));
    let read = SampleRecipe::from_json(&recipe.to_json()).unwrap();
    assert!(matches!(read.options.outside, Some(Outside::Fill(value)) if value.is_nan()));
}
