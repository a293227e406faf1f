//! Identifiers.

use zvf_precomputed::{property_ids, shader_ids};

#[test]
fn property_ids_are_distinct_identifiers() {
    let names = ["Length", "x", "a b", "a__b", "a_b", "9th", "", "Größe", "_"];
    let ids = property_ids(names);
    assert_eq!(
        ids,
        [
            "length", "x", "a_b", "a_b2", "a_b3", "p9th", "p", "gr_e", "p2"
        ]
    );
}

#[test]
fn shader_ids_avoid_the_names_of_shaders() {
    let names = ["x", "rgba", "gl_x", "length", "radius", "color"];
    let ids = shader_ids(names);
    assert_eq!(
        ids,
        ["v_x", "v_rgba", "v_gl_x", "v_length", "radius", "v_color"]
    );
}
