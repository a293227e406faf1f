//! Arguments of `zvf query`, and the query they form.

use clap::Parser;
use zvf::{
    Bbox, Clip, LevelChoice, LevelId, Mode, NearestTo, Position, Predicate, Query, Region, Scope,
    Selection, Sphere, VertexBudget,
};
use zvf_cli::{arguments::QueryUsageError, commands::query::QueryArgs};
use zvf_model::grid::ChunkCoord;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    arguments: QueryArgs,
}

fn parse(line: &[&str]) -> Result<QueryArgs, clap::Error> {
    let line = ["zvf", "store.zv"].iter().chain(line);
    Command::try_parse_from(line).map(|command| command.arguments)
}

#[track_caller]
fn query(line: &[&str]) -> Query {
    parse(line).unwrap().query().unwrap()
}

/// Returns the error of an invalid command line.
#[track_caller]
fn refused(line: &[&str]) -> String {
    let error = parse(line).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn no_arguments_select_everything_of_level_0() {
    let found = query(&[]);
    assert_eq!(format!("{found:?}"), format!("{:?}", Query::new()));
}

#[test]
fn a_level_is_given_by_number_scale_or_vertices() {
    let number = |n| LevelChoice::Number(LevelId::new(n));
    assert_eq!(query(&["--level", "3"]).level, number(3));
    assert_eq!(query(&["--scale", "2.5"]).level, LevelChoice::Scale(2.5));
    assert_eq!(
        query(&["--vertices", "1000"]).level,
        LevelChoice::Vertices(1000)
    );
    let position = Position::new(&[-1.0, 2.0]).unwrap();
    assert_eq!(query(&["--budget", "9"]).level, VertexBudget::new(9).into());
    let found = query(&["--budget", "9", "--focus", "-1,2"]).level;
    assert_eq!(found, VertexBudget::new(9).focus(position).into());
    assert!(refused(&["--focus", "1,2"]).contains("--budget"));
    assert!(query(&["--level", "1", "--own-level"]).own_level);
    for other in [
        ["--level", "1"],
        ["--drill", "1"],
        ["--nearest", "1,2"],
        ["--chunk", "0.0"],
    ] {
        let line = [&["--budget", "9"], &other[..]].concat();
        assert!(refused(&line).contains("cannot be used with"), "{other:?}");
    }
    assert!(refused(&["--level", "1", "--scale", "2"]).contains("cannot be used with"));
    assert!(refused(&["--scale", "0"]).contains("the scale must be a number above 0"));
}

/// Lower bounds come first, then upper bounds; the first may start with a minus.
#[test]
fn positions_may_be_negative() {
    let bbox = Bbox::new(&[-1.0, -1.0, -1.0], &[2.0, 2.0, 2.0]).unwrap();
    let found = query(&["--bbox", "-1,-1,-1,2,2,2"]);
    assert_eq!(found.region, Some(Region::Box(bbox)));
    assert_eq!(query(&["--bbox=-1,-1,-1,2,2,2"]).region, found.region);
    let slab = Bbox::new(&[f64::NEG_INFINITY, 0.0], &[f64::INFINITY, 1.5]).unwrap();
    let found = query(&["--bbox", "-inf, 0, inf, 1.5"]);
    assert_eq!(found.region, Some(Region::Box(slab)));
    let sphere = Sphere::new(&[-1.0, 2.0, -3.0], 4.5).unwrap();
    let found = query(&["--sphere", "-1,2,-3,4.5"]);
    assert_eq!(found.region, Some(Region::Sphere(sphere)));
    let position = Position::new(&[-0.5, 1e3]).unwrap();
    let found = query(&["--nearest", "-0.5,1e3", "--k", "7"]);
    assert_eq!(found.nearest, Some(NearestTo { position, count: 7 }));
    let found = query(&["--nearest", "-0.5,1e3"]);
    assert_eq!(found.nearest.map(|nearest| nearest.count), Some(1));
    assert_eq!(query(&["--drill", "-1"]).drill, Some(-1));
    assert_eq!(query(&["--drill", "+2"]).drill, Some(2));
}

#[test]
fn invalid_positions_are_explained() {
    let says = refused(&["--bbox", "0,0,0,1,1"]);
    assert!(says.contains("5 numbers were given"), "{says}");
    assert!(refused(&["--bbox", "0,x"]).contains("bound 2 of the box is not a number"));
    let says = refused(&["--bbox", "nan,0,0,1,1,1"]);
    let expected =
        "bound 1 of the box is not a number; write a number, or inf or -inf for no bound";
    assert!(says.contains(expected), "{says}");
    assert!(refused(&["--nearest", "0,nan,1"]).contains("value 1, counted from 0"));
    assert!(refused(&["--sphere", "0,0,-1"]).contains("the radius must be a number"));
    assert!(refused(&["--nearest", "0,,1"]).contains("value 1, counted from 0, is not a number"));
    assert!(refused(&["--bbox", "0,1", "--sphere", "0,1"]).contains("cannot be used with"));
    assert!(refused(&["--k", "3"]).contains("--nearest"));
    assert!(refused(&["--nearest", "0", "--k", "0"]).contains('0'));
}

#[test]
fn modes_have_names_and_only_clip_splits_geometry() {
    let by_default = query(&[]);
    assert_eq!(by_default.mode, Mode::Touch);
    assert_eq!(by_default.predicate_mode, Mode::Clip);
    for mode in Mode::ALL {
        let found = query(&["--bbox", "0,1", "--mode", mode.name()]);
        assert_eq!((found.mode, found.predicate_mode), (mode, mode));
    }
    assert!(refused(&["--mode", "inside"]).contains("touch, within, clip"));
    let clip = query(&["--where", "fa > 0", "--mode", "clip"]);
    assert_eq!(clip.clip, Clip::Split);
    let dropped = query(&["--sphere", "0,1", "--mode", "clip", "--drop-cut"]);
    assert_eq!(dropped.clip, Clip::Drop);
    let alone = parse(&["--drop-cut"]).unwrap();
    assert_eq!(alone.query().unwrap_err(), QueryUsageError::DropCut);
}

/// A mode without anything to apply to was ignored.
#[test]
fn a_mode_needs_a_region_or_a_predicate_on_vertices() {
    for line in [
        &["--mode", "clip"][..],
        &["--mode", "within", "--object", "3"],
        &["--mode", "touch", "--where", "object.length > 3"],
        &["--mode", "touch", "--where", "link.weight > 3"],
    ] {
        let error = parse(line).unwrap().query().unwrap_err();
        assert!(matches!(error, QueryUsageError::Mode(_)), "{line:?}");
        assert!(error.to_string().contains("add --bbox"), "{error}");
    }
    for filter in ["fa > 1", "vertex.fa > object.length", "fragment.fa > 1"] {
        query(&["--mode", "touch", "--where", filter]);
    }
}

#[test]
fn ids_are_separated_by_commas_or_options() {
    let found = query(&["--object", "5,-3", "--object", "5", "--group", "1,2"]);
    assert_eq!(found.objects, Some(vec![5, -3, 5]));
    assert_eq!(found.groups, Some(vec![1, 2]));
    let found = query(&["--chunk", "-1.0.2", "--chunk", "0.0.0,0.0.1"]);
    let chunks = [[-1, 0, 2], [0, 0, 0], [0, 0, 1]].map(ChunkCoord::new);
    assert_eq!(found.chunks, Some(chunks.to_vec()));
    assert!(refused(&["--chunk", "0,0,x"]).contains("separated by points"));
    // The store is not parsed as one more id.
    let line = ["zvf", "--object", "5", "store.zv"];
    assert!(Command::try_parse_from(line).is_ok());
}

#[test]
fn attributes_are_filtered_and_selected() {
    let found = query(&["--where", "radius > 2 and kind = 'axon'"]);
    let expected = Predicate::parse("radius > 2 and kind = 'axon'").unwrap();
    assert_eq!(found.filter, Some(expected));
    let found = query(&["--where", "-1 < radius"]);
    assert!(found.filter.is_some());
    let says = refused(&["--where", "radius >"]);
    assert!(
        says.contains("at byte 8: expected a column or a value"),
        "{says}"
    );
    let found = query(&["--select", "radius,object.length"]);
    let names = [(None, "radius"), (Some(Scope::Object), "length")]
        .map(|(scope, name)| (scope, name.to_owned()));
    assert_eq!(found.columns, Selection::Named(names.to_vec()));
    assert_eq!(query(&["--select", ""]).columns, Selection::none());
    assert_eq!(query(&[]).columns, Selection::All);
    assert!(refused(&["--select", "a,,b"]).contains("between two commas"));
    let found = query(&["--chunked-by", "-3"]);
    assert_eq!(found.chunked_by, Some((-3).into()));
}

#[test]
fn other_options_are_passed_on() {
    let found = query(&[
        "--no-objects",
        "--limit",
        "10",
        "--geometry",
        "soma",
        "--keep-going",
    ]);
    assert!(!found.owners && found.keep_going);
    assert_eq!(found.limit, Some(10));
    assert_eq!(found.geometry.as_deref(), Some("soma"));
}

#[test]
fn count_and_explain_exclude_output() {
    assert!(refused(&["--count", "-o", "a.csv"]).contains("cannot be used with"));
    assert!(refused(&["--explain", "-o", "a.csv"]).contains("cannot be used with"));
    assert!(refused(&["--explain", "--count"]).contains("cannot be used with"));
}

#[test]
fn a_wrong_number_of_axes_is_an_error() {
    let arguments = parse(&["--bbox", "0,0,1,1"]).unwrap();
    assert!(arguments.check_axes(&["x", "y"]).is_ok());
    let error = arguments.check_axes(&["x", "y", "z"]).unwrap_err();
    let says = "--bbox has 2 axes, the store has 3: x, y, z; give a lower and an upper bound for \
                each axis, as --bbox X0,Y0,Z0,X1,Y1,Z1";
    assert_eq!(error.to_string(), says);
    let error = parse(&["--sphere", "0,0,1"])
        .unwrap()
        .check_axes(&["x", "y", "z"])
        .unwrap_err();
    let says = "--sphere has 2 axes, the store has 3: x, y, z; give a centre with each axis, and a \
                radius, as --sphere X,Y,Z,R";
    assert_eq!(error.to_string(), says);
    for (option, value) in [("--sphere", "0,0,1"), ("--nearest", "0,0")] {
        let arguments = parse(&[option, value]).unwrap();
        assert!(arguments.check_axes(&["x", "y"]).is_ok());
        let error = arguments.check_axes(&["x"]).unwrap_err();
        assert!(error.to_string().starts_with(option));
    }
}
