//! Damage to parametric objects, composite geometries and headers.

use serde_json::json;
use zvf_testkit::golden::{Files, Golden};

use super::{
    check_of, found, lines,
    small::{group, put, remove, set},
};
use crate::memory;

fn recorded(name: &str) -> Files {
    Golden::open("zvf-09").store(&format!("{name}/store.zarrvectors"))
}

#[test]
fn parametric_objects_have_a_type_coefficients_and_a_name() {
    let check = |damage: &dyn Fn(&mut Files), expected: &[&str]| {
        check_of(recorded("parametric"), damage, expected);
    };
    check(&|_| {}, &[]);
    let types = |value: serde_json::Value| {
        move |files: &mut Files| {
            set(
                files,
                "parametric/zarr.json",
                &["parametric_types"],
                value.clone(),
            );
        }
    };
    let known = json!({
        "0": {"name": "plane", "coefficients": ["A", "B", "C", "D"]},
        "1": {"name": "line", "coefficients": ["x0", "y0", "z0", "dx", "dy", "dz"]},
        "2": {"name": "sphere", "coefficients": ["cx", "cy", "cz", "r"]},
        "7": {"name": "circle", "coefficients": ["cx", "cy", "r"]},
    });
    let mut fewer = known.clone();
    fewer.as_object_mut().unwrap().remove("7");
    check(&types(fewer), &["ZV-L3-070 parametric/objects row 3"]);
    let mut shorter = known.clone();
    shorter["2"]["coefficients"] = json!(["cx", "cy", "cz"]);
    check(&types(shorter), &["ZV-L3-071 parametric/objects row 1"]);
    let mut longer = known;
    longer["1"]["coefficients"] = json!(["a", "b", "c", "d", "e", "f", "g"]);
    check(&types(longer), &["ZV-L3-071 parametric/objects row 2"]);
    check(
        &|files| {
            let file = "parametric/names/zarr.json";
            let codecs = json!([{"name": "vlen-bytes", "configuration": {}}]);
            let edit = json!({"op": "set", "file": file, "path": ["codecs"], "value": codecs});
            zvf_testkit::damage::apply(files, &edit);
            let names = [&b"a"[..], b"b", b"\xff", b"d"];
            put(
                files,
                "parametric/names/c/0",
                zvf_format::vlen::encode(&names).unwrap(),
            );
        },
        &["ZV-L3-075 parametric/names -"],
    );
    check(&|files| remove(files, "parametric/names"), &[]);
}

#[test]
fn composite_geometries_match_their_counts_and_links() {
    let healthy = lines(&found(&recorded("composite")));
    assert_eq!(healthy, [""; 0]);
    let check = |damage: &dyn Fn(&mut Files), expected: &[&str]| {
        check_of(recorded("composite"), damage, expected);
    };
    check(
        &|files| {
            let path = ["mesh", "vertex_count"];
            set(files, "0/geometry_index/zarr.json", &path, json!(1));
            set(
                files,
                "0/vertices_graph/zarr.json",
                &["vertex_count"],
                json!(1),
            );
        },
        &[
            "ZV-L3-073 0/geometry_index attributes.mesh.vertex_count",
            "ZV-L3-073 0/vertices_graph attributes.vertex_count",
        ],
    );
    check(
        &|files| {
            let bytes = (0..24_i64).map(|end| end * 1000).flat_map(i64::to_le_bytes);
            let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
            let file = "0/links_mesh/zarr.json";
            let edit = json!({"op": "set", "file": file, "path": ["codecs"], "value": codecs});
            zvf_testkit::damage::apply(files, &edit);
            put(files, "0/links_mesh/c/0/0", bytes.collect());
        },
        &["ZV-L3-074 0/links_mesh -"],
    );
    check(
        &|files| remove(files, "0/links_mesh"),
        &["ZV-L3-004 0/links_mesh -"],
    );
    check(
        &|files| set(files, "0/links_mesh/zarr.json", &["link_width"], json!(2)),
        &["ZV-L3-004 0/links_mesh -"],
    );
}

#[test]
fn headers_are_groups() {
    let mut files = super::small::small();
    group(&mut files, "headers", json!({}));
    group(&mut files, "headers/swc", json!({"creator": "unknown"}));
    let header = |files: &Files| -> Vec<String> {
        let found = memory::lines(files).into_iter();
        found.filter(|line| line.starts_with("ZV-L1-050")).collect()
    };
    assert_eq!(header(&files), [""; 0]);
    let array = super::small::get(&files, "0/object_index/object_ids/zarr.json");
    put(&mut files, "headers/swc/zarr.json", array);
    assert_eq!(header(&files), ["ZV-L1-050 headers/swc - an array"]);
}
