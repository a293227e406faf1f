//! The stores and files that the pages use.

use std::{fmt::Write, fs, os::unix::fs::PermissionsExt, path::Path};

use crate::{sample::nifti, unpack, zvf};

/// Creates the samples in a folder.
pub(super) fn make(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    write("tracts.csv", tracts(0..24, "object_id"));
    // Without ids, further along.
    write("more.csv", tracts(24..27, "part"));
    write("tracts.objects.csv", objects());
    write("tracts.groups.csv", groups());
    write("cells.csv", cells());
    let (nodes, edges) = wires();
    write("nodes.csv", nodes);
    write("edges.csv", edges);
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("volume.npy"), volume()).unwrap();
    fs::write(folder.join("md.nii"), nifti([6.0, 6.0, 6.0], [-20.0; 3])).unwrap();
    create(&[
        &at("tracts.zv"),
        "--kind=streamlines",
        "--from",
        &at("tracts.csv"),
        "--chunk-shape=8,8,8",
        "--bounds=-16,-16,-16,32,32,32",
    ]);
    let output = zvf(&["query", &at("tracts.zv"), "-o", &at("tracts.trk")]);
    assert!(output.status.success(), "{output:?}");
    let output = zvf(&["query", &at("tracts.zv"), "-o", &at("right.npz")]);
    assert!(output.status.success(), "{output:?}");
    create(&[
        &at("right.zv"),
        "--kind=streamlines",
        "--from",
        &at("right.npz"),
    ]);
    write("cloud.csv", cloud());
    create(&[&at("cloud.zv"), "--kind=points", "--from", &at("cloud.csv")]);
    let classified = at("classified.parquet");
    let output = zvf(&["query", &at("cloud.zv"), "--row-ids", "-o", &classified]);
    assert!(output.status.success(), "{output:?}");
    let (surface, curvature) = surface();
    write("left.surf.gii", surface);
    write("curvature.shape.gii", curvature);
    fs::create_dir(folder.join("neurons")).unwrap();
    for id in [17, 42] {
        write(&format!("neurons/{id}.swc"), neuron(id));
    }
    unpack(
        "zvf-09",
        "polylines_3d/store.zarrvectors",
        &folder.join("STORE"),
    );
    unpack("zvf-07", "graph.zv", &folder.join("old.zv"));
}

fn create(words: &[&str]) {
    let output = zvf(&[&["create", "--quiet"], words].concat());
    assert!(output.status.success(), "{output:?}");
}

/// Returns a neuron with a soma and six dendrites that fork three times. Coordinates have two
/// decimals.
fn neuron(id: u32) -> String {
    let mut tree = Tree {
        text: format!("# neuron {id}\n"),
        samples: 0,
        state: u64::from(id),
    };
    let soma = [f64::from(id) * 4.0, f64::from(id % 5) * 9.0, 0.0];
    let root = tree.push(1, soma, 6.0, None);
    for dendrite in 0..6 {
        let turn = f64::from(dendrite) * std::f64::consts::TAU / 6.0;
        tree.grow(root, soma, [turn, 0.35], 3);
    }
    tree.text
}

/// A neuron under construction.
struct Tree {
    text: String,
    samples: u32,
    state: u64,
}

impl Tree {
    /// Returns a number from -1 to 1, the same for each run.
    fn random(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bits = u32::try_from(self.state >> 32).unwrap();
        f64::from(bits) / f64::from(1_u32 << 31) - 1.0
    }

    fn push(&mut self, kind: u32, at: [f64; 3], radius: f64, parent: Option<u32>) -> u32 {
        self.samples += 1;
        let parent = parent.map_or("-1".to_owned(), |parent| parent.to_string());
        // Adding 0 turns -0 into 0.
        let [x, y, z, radius] =
            [at[0], at[1], at[2], radius].map(|value| (value * 100.0).round() / 100.0 + 0.0);
        let id = self.samples;
        writeln!(self.text, "{id} {kind} {x} {y} {z} {radius} {parent}").unwrap();
        id
    }

    /// Adds a branch in a direction, by its turn and its height, and two branches at its end.
    fn grow(&mut self, mut parent: u32, mut at: [f64; 3], direction: [f64; 2], forks: u32) {
        let [mut turn, mut height] = direction;
        for _ in 0..10 {
            turn += 0.15 * self.random();
            height += 0.12 * self.random();
            at[0] += 3.0 * turn.cos() * height.cos();
            at[1] += 3.0 * turn.sin() * height.cos();
            at[2] += 3.0 * height.sin();
            parent = self.push(3, at, 0.4 + 0.3 * f64::from(forks), Some(parent));
        }
        if forks > 0 {
            for side in [-0.45, 0.45] {
                self.grow(parent, at, [turn + side, height + 0.3 * side], forks - 1);
            }
        }
    }
}

/// Returns fibres through a box, with an attribute that is largest in the middle.
fn tracts(objects: std::ops::Range<u32>, key: &str) -> String {
    let mut text = format!("x,y,z,fa,{key}\n");
    for object in objects {
        let turn = f64::from(object) * 0.26;
        for step in 0..30 {
            let along = f64::from(step) / 29.0;
            let (x, y) = (28.0 * along - 4.0, 8.0 + 6.0 * (3.0 * along + turn).sin());
            let z = 10.0 + 8.0 * (2.0 * along + turn).cos();
            let fa = 0.2 + 1.2 * along * (1.0 - along) + 0.01 * f64::from(object);
            writeln!(text, "{x:.3},{y:.3},{z:.3},{fa:.3},{object}").unwrap();
        }
    }
    text
}

fn objects() -> String {
    let mut text = "object_id,length,bundle\n".to_owned();
    for object in 0..24 {
        let bundle = if object < 12 { "arcuate" } else { "cingulum" };
        let length = 3.0 + 1.5 * f64::from(object);
        writeln!(text, "{object},{length},{bundle}").unwrap();
    }
    text
}

fn groups() -> String {
    let mut text = "group,object_id\n".to_owned();
    for object in 0..24 {
        writeln!(text, "{},{object}", object / 12).unwrap();
    }
    text
}

fn cells() -> String {
    let mut text = "x,y,z,radius,kind\n".to_owned();
    for cell in 0..500_u32 {
        // Spreads positions evenly with multiples of irrational ratios such as the golden ratio.
        let at = |ratio: f64| (f64::from(cell) * ratio).fract() * 100.0;
        let kind = ["soma", "glia", "axon"][cell as usize % 3];
        let (x, y, z) = (at(0.618_034), at(0.754_878), at(0.569_840));
        let radius = f64::from(cell % 7) * 0.5 + 1.0;
        writeln!(text, "{x:.2},{y:.2},{z:.2},{radius},{kind}").unwrap();
    }
    text
}

/// Returns points with classes of laser scans: ground, low noise and high noise.
fn cloud() -> String {
    let mut text = "x,y,z,class\n".to_owned();
    for point in 0..200_u32 {
        let (x, y) = (point % 20, point / 20);
        let (z, class) = match point % 25 {
            7 => (-40, 7),
            18 => (90, 18),
            _ => (2, 2),
        };
        writeln!(text, "{x},{y},{z},{class}").unwrap();
    }
    text
}

/// Returns a folded surface, and the depth of its folds, as GIFTI.
fn surface() -> (String, String) {
    const RINGS: u32 = 60;
    const AROUND: u32 = 120;
    let (mut points, mut folds) = (String::new(), String::new());
    let mut faces = String::new();
    for ring in 0..=RINGS {
        let down = std::f64::consts::PI * f64::from(ring) / f64::from(RINGS);
        for step in 0..AROUND {
            let turn = std::f64::consts::TAU * f64::from(step) / f64::from(AROUND);
            let waves = (9.0 * down + 2.0 * (4.0 * turn).sin()).sin() * (6.0 * turn).cos();
            let fold = waves * down.sin();
            let radius = 50.0 + 4.0 * fold;
            let (x, y) = (
                radius * down.sin() * turn.cos(),
                1.3 * radius * down.sin() * turn.sin(),
            );
            writeln!(points, "{x:.3} {y:.3} {:.3}", 0.9 * radius * down.cos()).unwrap();
            writeln!(folds, "{fold:.4}").unwrap();
            if ring < RINGS {
                let row = ring * AROUND;
                let (here, next) = (row + step, row + (step + 1) % AROUND);
                writeln!(faces, "{here} {} {next}", here + AROUND).unwrap();
                writeln!(faces, "{next} {} {}", here + AROUND, next + AROUND).unwrap();
            }
        }
    }
    let (vertices, triangles) = ((RINGS + 1) * AROUND, 2 * RINGS * AROUND);
    let array = |intent: &str, kind: &str, shape: &str, data: &str| {
        format!(
            "<DataArray Intent=\"NIFTI_INTENT_{intent}\" DataType=\"NIFTI_TYPE_{kind}\" \
             ArrayIndexingOrder=\"RowMajorOrder\" {shape} Encoding=\"ASCII\" \
             Endian=\"LittleEndian\"><Data>{data}</Data></DataArray>\n"
        )
    };
    let rows = |rows: u32| format!("Dimensionality=\"2\" Dim0=\"{rows}\" Dim1=\"3\"");
    let file = |arrays: &[String]| {
        let count = arrays.len();
        let arrays = arrays.concat();
        format!("<GIFTI Version=\"1.0\" NumberOfDataArrays=\"{count}\">\n{arrays}</GIFTI>\n")
    };
    let surface = [
        array("POINTSET", "FLOAT32", &rows(vertices), &points),
        array("TRIANGLE", "INT32", &rows(triangles), &faces),
    ];
    let shape = format!("Dimensionality=\"1\" Dim0=\"{vertices}\"");
    let curvature = array("SHAPE", "FLOAT32", &shape, &folds);
    (file(&surface), file(&[curvature]))
}

/// Returns a mesh of nodes, and the edges between neighbours.
fn wires() -> (String, String) {
    let (mut nodes, mut edges) = ("x,y,z\n".to_owned(), "links[0],links[1]\n".to_owned());
    for node in 0..64_u32 {
        let (x, y, z) = (node % 4 * 30, node / 4 % 4 * 30, node / 16 * 30);
        writeln!(nodes, "{x},{y},{z}").unwrap();
        for (step, inside) in [(1, node % 4 < 3), (4, node / 4 % 4 < 3), (16, node < 48)] {
            if inside {
                writeln!(edges, "{node},{}", node + step).unwrap();
            }
        }
    }
    (nodes, edges)
}

/// Returns an array of 32 × 32 × 32 float32 in the format of NumPy.
fn volume() -> Vec<u8> {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (32, 32, 32), }".to_owned();
    while !(11 + header.len()).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    for at in 0..32_u16 * 32 * 32 {
        bytes.extend(f32::from(at % 997).to_le_bytes());
    }
    bytes
}

/// Copies the samples for a page.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs the program under test for `cargo run -- …`, with a small demo. Commands of xtask are not
/// run, because most of them start this test; they must only be listed in the usage.
const CARGO: &str = r#"#!/bin/sh
set -eu
case "$1" in
run)
    while [ "$1" != -- ]; do shift; done
    shift
    exec zvf "$@" ;;
xtask)
    grep -qiE "^    $2[ ,({]" "$ZVF_ROOT/xtask/src/main.rs" || { echo "cargo xtask $2: no such command" >&2; exit 1; } ;;
*)
    echo "cargo $1: the guide's tests do not know how to run it" >&2
    exit 1 ;;
esac
"#;

/// Writes a small demo instead of the full one.
const ZVF: &str = r#"#!/bin/sh
[ "$*" != demo ] || set -- demo --small
exec "$ZVF_PROGRAM" "$@"
"#;

/// Creates the programs that blocks run, which take precedence over those of the system.
/// Runs the jobs at once, the tasks of an array from the last to the first, and each of them twice,
/// as a scheduler does after it lost a node.
const SBATCH: &str = r#"#!/bin/sh
set -eu
array= wrap=
while [ $# -gt 0 ]; do
    case "$1" in
    --array=0-*) array=${1#--array=0-} ;;
    --wrap) shift; wrap=$1 ;;
    --parsable | --mem=* | --dependency=afterok:*) ;;
    *) echo "sbatch: unknown option $1" >&2; exit 1 ;;
    esac
    shift
done
if [ -n "$array" ]; then
    for task in $(seq "$array" -1 0); do
        for attempt in 1 2; do SLURM_ARRAY_TASK_ID=$task sh -euc "$wrap" >&2; done
    done
else
    sh -euc "$wrap" >&2
fi
echo $$
"#;

/// Runs the command of an indexed job for each index.
const KUBECTL: &str = r#"#!/bin/sh
set -eu
case "$1" in
apply)
    count=$(sed -n 's/^ *completions: //p' "$3")
    command=$(sed -n "s/^ *command: \[sh, -c, '\(.*\)'\]$/\1/p" "$3")
    [ -n "$command" ] || { echo "kubectl: no command" >&2; exit 1; }
    for index in $(seq 0 $((count - 1))); do JOB_COMPLETION_INDEX=$index sh -euc "$command"; done ;;
wait) ;;
*) echo "kubectl: unknown command $1" >&2; exit 1 ;;
esac
"#;

pub(super) fn programs(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let scripts = [
        ("cargo", CARGO),
        ("zvf", ZVF),
        ("sbatch", SBATCH),
        ("kubectl", KUBECTL),
    ];
    for (name, script) in scripts {
        let program = folder.join(name);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
