//! Formulas are read back as written.

use zvf::{CreateOptions, Dataset, Store};
use zvf_build::{
    BuildError, Design, Formula, FormulaSet, Geometry, GeometryKind, NumericColumn, Profile,
    WritePlan,
};

use crate::block_on;

fn formula(type_id: u32, name: Option<&str>, coefficients: &[f64]) -> Formula {
    Formula {
        type_id,
        name: name.map(str::to_owned),
        coefficients: coefficients.to_vec(),
    }
}

fn some() -> FormulaSet {
    let circle = ["cx", "cy", "r"].map(str::to_owned).to_vec();
    FormulaSet {
        types: [(7, ("circle".to_owned(), circle))].into(),
        objects: vec![
            formula(0, Some("floor"), &[0.0, 0.0, 1.0, 5.0]),
            formula(2, None, &[1.0, 2.0, 3.0, 4.5]),
            formula(1, Some("axis \u{e9}"), &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
            formula(7, None, &[1.0, 2.0, 3.0]),
        ],
        groups: vec![vec![0, 2], Vec::new(), vec![3]],
    }
}

fn plan(profile: Profile, parametric: FormulaSet) -> Result<WritePlan, BuildError> {
    let mut design = Design::new(GeometryKind::Points);
    design.profile = profile;
    design.parametric = Some(parametric);
    WritePlan::new(Geometry::new(NumericColumn::float32(3, [1.0; 6])), design)
}

#[test]
fn formulas_are_read_back_in_every_profile() {
    for profile in Profile::ALL {
        block_on(async {
            let none: [(&str, &[u8]); 0] = [];
            let store = Store::from_memory(none).unwrap();
            let plan = plan(profile, some()).unwrap();
            zvf::create_from_plan(&store, plan, &CreateOptions::default())
                .await
                .unwrap();
            let dataset = Dataset::open(store).await.unwrap();
            let found = dataset.catalog().parametric().await.unwrap().unwrap();
            let names: Vec<_> = found
                .objects
                .iter()
                .map(|object| object.name.as_deref())
                .collect();
            let expected = ["floor", "sphere_1", "axis \u{e9}", "circle_3"].map(Some);
            assert_eq!(names, expected, "{profile:?}");
            for (found, expected) in found.objects.iter().zip(some().objects) {
                assert_eq!(found.type_id, u64::from(expected.type_id));
                let values: Vec<f64> = found.coefficients.iter().map(|c| c.value).collect();
                assert_eq!(values, expected.coefficients);
            }
            let last = found.objects[3].coefficients[2].name.as_deref();
            assert_eq!(last, Some("r"));
            let groups = found.groups.unwrap();
            let members = |group| groups.members(group).unwrap().iter().collect::<Vec<i64>>();
            assert_eq!([0, 1, 2].map(members), [vec![0, 2], vec![], vec![3]]);
        });
    }
}

#[test]
fn invalid_formulas_are_rejected() {
    let check = |object: Formula| {
        let parametric = FormulaSet {
            objects: vec![object],
            ..FormulaSet::default()
        };
        plan(Profile::V09, parametric).unwrap_err()
    };
    let unknown = check(formula(9, None, &[1.0]));
    assert!(matches!(
        unknown,
        BuildError::UnknownFormulaType { type_id: 9, .. }
    ));
    let short = check(formula(0, None, &[1.0]));
    assert!(matches!(
        short,
        BuildError::FormulaCoefficients {
            expected: 4,
            found: 1,
            ..
        }
    ));
    let infinite = check(formula(0, None, &[1.0, 1.0, f64::NAN, 0.0]));
    assert!(matches!(infinite, BuildError::FormulaCoefficients { .. }));
}
