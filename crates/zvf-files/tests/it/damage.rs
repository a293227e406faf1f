//! Damaged files: refused with an error or read, without a panic and without absurd reservations.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use zip::CompressionMethod;
use zvf::Scope;
use zvf_files::{FileFault, FileObjectIds, FilePlace, FileReadOptions};

use crate::samples::{self, Random};

/// Reads a file to its end, and returns the error as one line.
pub(crate) fn read(path: &Path) -> Result<usize, String> {
    let options = FileReadOptions::default();
    let mut reader = zvf_files::open(path, &options).map_err(|error| chain(&error))?;
    let whole = zvf_files::read_whole(reader.as_mut()).map_err(|error| chain(error.as_ref()))?;
    Ok(whole.vertices())
}

pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Checks that every prefix is refused. If the format has no mark of its end, a prefix that ends
/// inside a line may be read with a note.
pub(crate) fn prefixes(name: &str, bytes: &[u8], is_open_ended: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let step = (bytes.len() / 400).max(1);
    let starts = (0..bytes.len().min(1100)).chain((1100..bytes.len()).step_by(step));
    for length in starts {
        fs::write(&path, &bytes[..length]).unwrap();
        let result = read(&path);
        assert!(
            result.is_err() || is_open_ended,
            "{name}: prefix of {length} bytes is read"
        );
        match result {
            Err(error) => assert!(error.contains(name), "{error}"),
            Ok(_) if bytes[..length].ends_with(b"\n") => {}
            // The rest is the name of a solid that has ended.
            Ok(_) if bytes[..length].windows(8).any(|part| part == b"endsolid") => {}
            Ok(_) => {
                let reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
                let notes = &reader.description().notes;
                let is_noted = notes.iter().any(|note| note.contains("cut off"));
                assert!(is_noted, "{name}: prefix of {length} bytes has no note");
            }
        }
    }
}

/// A file with random bytes changed is refused or read.
pub(crate) fn flips(name: &str, bytes: &[u8], seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut random = Random::new(seed);
    for _ in 0..500 {
        fs::write(&path, flip(bytes, &mut random)).unwrap();
        drop(read(&path));
    }
}

/// Returns the bytes with one to four of them changed, mostly in the header.
pub(crate) fn flip(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let limit = if random.below(3) > 0 {
            bytes.len().min(1100)
        } else {
            bytes.len()
        };
        let at = usize::try_from(random.below(u64::try_from(limit).unwrap())).unwrap();
        damaged[at] = u8::try_from(random.below(256)).unwrap();
    }
    damaged
}

#[test]
fn damaged_trk_is_refused_or_read() {
    let bytes = samples::trk(&mut Random::new(11), false);
    prefixes("a.trk", &bytes, false);
    flips("a.trk", &bytes, 12);
}

#[test]
fn damaged_tck_is_refused_or_read() {
    let [bytes, _] = samples::tck(&mut Random::new(13), "Float32LE");
    prefixes("a.tck", &bytes, false);
    flips("a.tck", &bytes, 14);
}

#[test]
fn damaged_trx_is_refused_or_read() {
    let members = samples::trx_members(&mut Random::new(15));
    let bytes = samples::trx(&members, CompressionMethod::Stored);
    prefixes("a.trx", &bytes, false);
    flips("a.trx", &bytes, 16);
}

/// Returns the error of a file.
pub(crate) fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    read(&path).unwrap_err()
}

#[test]
fn errors_of_trk_name_place_and_reason() {
    let bytes = samples::trk(&mut Random::new(17), false);
    let with = |at: usize, field: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + field.len()].copy_from_slice(field);
        refused("a.trk", &bytes)
    };
    let cases = [
        (with(0, b"TRACX"), "starts with TRACK"),
        (with(996, &999_i32.to_le_bytes()), "hdr_size is 999"),
        (with(992, &3_i32.to_le_bytes()), "version is 3"),
        (with(12, &0.0_f32.to_le_bytes()), "voxel_size is 0"),
        (with(36, &(-1_i16).to_le_bytes()), "n_scalars is -1"),
        (with(948, b"ARS"), "another sequence"),
        (with(948, b"RAX"), "voxel_order"),
        (with(988, &41_i32.to_le_bytes()), "40 found, 41 declared"),
        (with(988, &39_i32.to_le_bytes()), "bytes follow the end"),
        (with(1000, &i32::MAX.to_le_bytes()), "are left"),
        (with(1000, &(-5_i32).to_le_bytes()), "cannot be negative"),
        (with(1004, &f32::NAN.to_le_bytes()), "a coordinate is NaN"),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

#[test]
fn errors_of_tck_name_place_and_reason() {
    let [bytes, scalars] = samples::tck(&mut Random::new(19), "Float32LE");
    let text = |from: &str, to: &str| {
        let at = bytes
            .windows(from.len())
            .position(|it| it == from.as_bytes())
            .unwrap();
        let mut bytes = bytes.clone();
        bytes.splice(at..at + from.len(), to.bytes());
        refused("a.tck", &bytes)
    };
    let cut = bytes.len() - 12;
    let mut longer = bytes.clone();
    longer.extend([0; 12]);
    let cases = [
        (text("Float32LE", "Float16LE"), "datatype is \"Float16LE\""),
        (text("mrtrix", "mrtric"), "starts with"),
        (text("\nEND\n", "\nEMD\n"), "the line END"),
        (text("file: .", "file: b"), "other files are not followed"),
        (refused("a.tck", &bytes[..cut]), "row of infinities"),
        (
            refused("a.tck", &bytes[..cut - 12]),
            "the end of a streamline",
        ),
        (refused("a.tck", &longer), "12 bytes follow the end"),
        (refused("a.tck", &scalars), "starts with"),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

#[test]
fn a_tsf_file_has_the_streamlines_of_its_tck_file() {
    let folder = tempfile::tempdir().unwrap();
    let [bytes, scalars] = samples::tck(&mut Random::new(21), "Float32LE");
    let (tck, tsf) = (folder.path().join("a.tck"), folder.path().join("fa.tsf"));
    fs::write(&tck, bytes).unwrap();
    let mut options = FileReadOptions::default();
    options.with = vec![tsf.clone()];
    let count = |scalars: &[u8]| {
        fs::write(&tsf, scalars).unwrap();
        let mut reader = zvf_files::open(&tck, &options).unwrap();
        zvf_files::read_whole(reader.as_mut()).map(|whole| whole.columns(Scope::Vertex).len())
    };
    assert_eq!(count(&scalars).unwrap(), 1);
    let error = count(&scalars[..scalars.len() - 4]).unwrap_err();
    assert!(chain(error.as_ref()).contains("fa.tsf"));
    let mut longer = scalars.clone();
    longer.extend(1.0_f32.to_le_bytes());
    longer.extend(f32::NAN.to_le_bytes());
    let error = count(&longer).unwrap_err();
    assert!(
        chain(error.as_ref()).contains("41 found, 40 declared"),
        "{}",
        chain(error.as_ref())
    );
}

#[test]
fn errors_of_trx_name_member_and_reason() {
    let members = samples::trx_members(&mut Random::new(23));
    let with = |name: &'static str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut members = members.clone();
        let found = members
            .iter_mut()
            .find(|(other, _)| *other == name)
            .unwrap();
        change(&mut found.1);
        refused("a.trx", &samples::trx(&members, CompressionMethod::Stored))
    };
    let and = |name: &'static str, bytes: &[u8]| {
        let mut members = members.clone();
        members.push((name, bytes.to_vec()));
        refused("a.trx", &samples::trx(&members, CompressionMethod::Stored))
    };
    let cases = [
        (
            with("offsets.uint64", &|it| it[8..16].fill(0xff)),
            "they ascend",
        ),
        (with("offsets.uint64", &|it| it[0] = 1), "they ascend"),
        (
            with("offsets.uint64", &|it| it.truncate(80)),
            "10 found, 41 declared",
        ),
        (
            with("positions.3.float32", &|it| it.truncate(it.len() - 1)),
            "by NB_VERTICES",
        ),
        (
            with("positions.3.float32", &|it| it[..4].fill(0xff)),
            "a coordinate is NaN",
        ),
        (
            with("groups/CST.uint32", &|it| it[0] = 40),
            "a member of a group is 40",
        ),
        (
            with("header.json", &|it| it.truncate(9)),
            "is not valid JSON",
        ),
        (
            with("header.json", &|it| *it = b"{}".to_vec()),
            "NB_STREAMLINES is absent",
        ),
        (
            with("dps/flag.bit", &|it| it.truncate(it.len() - 1)),
            "39 found, 40 declared",
        ),
        (and("dpv/a.b.c.float32", b""), "NAME.TYPE"),
        (
            and("dpg/NONE/x.float32", &[0; 4]),
            "has a group of this name",
        ),
        (and("../x.float32", b""), "leave the archive"),
        (
            and("dpg/AF_L/mean.int64", &[1, 0, 0, 0, 0, 0, 0, 16]),
            "rounded by float64; give all groups a value",
        ),
        (
            and("dpg/CST/id.int64", &[1, 0, 0, 0, 0, 0, 0, 16]),
            "rounded by float64; give all groups a value",
        ),
    ];
    for (error, reason) in cases {
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

/// Ids of streamlines take memory, so their number is compared with the offsets first.
#[test]
fn an_absurd_number_of_streamlines_of_trx_is_refused() {
    let mut members = samples::trx_members(&mut Random::new(33));
    members.retain(|(name, _)| !name.starts_with("dps"));
    let header = String::from_utf8(members[0].1.clone()).unwrap();
    let absurd = "\"NB_STREAMLINES\":1000000000000000000";
    let header = header.replace("\"NB_STREAMLINES\":40", absurd);
    assert!(header.contains(absurd));
    members[0].1 = header.into_bytes();
    let error = refused("a.trx", &samples::trx(&members, CompressionMethod::Stored));
    let reason = "41 found, 1000000000000000001 declared";
    assert!(error.contains(reason), "{error}");
}

/// A checksum of the zip file is verified for stored members too.
#[test]
fn a_changed_member_of_trx_fails_its_checksum() {
    let members = samples::trx_members(&mut Random::new(25));
    let mut bytes = samples::trx(&members, CompressionMethod::Stored);
    let needle = &members[1].1[..16];
    let at = bytes.windows(16).position(|it| it == needle).unwrap();
    bytes[at] ^= 1;
    assert!(refused("a.trx", &bytes).contains("positions.3.float32"));
}

/// Changes the size that both headers of a member of a zip file state.
fn declare(archive: &mut [u8], name: &str, size: u32) {
    let mut changed = 0;
    for (signature, size_at, name_at) in [(*b"PK\x03\x04", 22, 30), (*b"PK\x01\x02", 24, 46)] {
        for start in 0..archive.len() - name_at {
            let header = &mut archive[start..];
            if header.starts_with(&signature) && header[name_at..].starts_with(name.as_bytes()) {
                header[size_at..size_at + 4].copy_from_slice(&size.to_le_bytes());
                changed += 1;
            }
        }
    }
    assert_eq!(changed, 2);
}

/// The size that a zip file states for a member is compared with its data before memory is reserved.
#[test]
fn members_of_trx_have_the_stated_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trx");
    let members = samples::trx_members(&mut Random::new(31));
    let (name, data) = &members[1];
    assert_eq!(*name, "positions.3.float32");
    let length = u32::try_from(data.len()).unwrap();
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        for size in [length + 12, 4_000_000_000] {
            let mut bytes = samples::trx(&members, method);
            declare(&mut bytes, name, size);
            fs::write(&path, bytes).unwrap();
            let error = zvf_files::open(&path, &FileReadOptions::default())
                .err()
                .unwrap();
            assert_eq!(error.place, FilePlace::Member((*name).to_owned()));
            let FileFault::Field { field, found, .. } = error.fault else {
                panic!("{}", chain(&error));
            };
            assert_eq!((field, found), ("its size", length.to_string()));
        }
    }
}

/// Regression test: a handle was held for each member, and a process has 1,024 by default.
#[test]
fn many_members_of_trx_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut members = samples::trx_members(&mut Random::new(32));
    let names: Vec<String> = (0..300)
        .map(|group| format!("groups/g{group:03}.uint32"))
        .collect();
    for (group, name) in (0_u32..).zip(&names) {
        members.push((name, (group % 3).to_le_bytes().to_vec()));
    }
    let unpacked = folder.path().join("folder.trx");
    for (name, bytes) in &members {
        let member = unpacked.join(name);
        fs::create_dir_all(member.parent().unwrap()).unwrap();
        fs::write(member, bytes).unwrap();
    }
    let mut wholes = Vec::new();
    let mut paths = vec![unpacked];
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let path = folder.path().join(format!("{method}.trx"));
        fs::write(&path, samples::trx(&members, method)).unwrap();
        paths.push(path);
    }
    for path in paths {
        let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
        #[cfg(target_os = "linux")]
        {
            let handles = fs::read_dir("/proc/self/fd").unwrap();
            let targets = handles.filter_map(|handle| fs::read_link(handle.ok()?.path()).ok());
            let open = targets.filter(|target| target.starts_with(&path)).count();
            assert!(open < 20, "{open} handles on {}", path.display());
        }
        // Members are read in step with each other, and again.
        for vertices in [7, 1000] {
            let mut whole = Vec::new();
            while let Some(batch) = reader.next(vertices).unwrap() {
                let columns = batch
                    .columns(Scope::Vertex)
                    .iter()
                    .map(|column| column.values.clone());
                whole.push((batch.positions().clone(), columns.collect::<Vec<_>>()));
            }
            assert!(!whole.is_empty());
            reader.rewind().unwrap();
        }
        wholes.push(
            zvf_files::read_whole(reader.as_mut())
                .unwrap()
                .into_builder(),
        );
    }
    assert_eq!(
        wholes[0].groups.values().filter(|it| it.len() == 1).count() / 300,
        1
    );
    for whole in &wholes[1..] {
        assert_eq!(whole.positions, wholes[0].positions);
        assert_eq!(
            (&whole.vertex, &whole.object),
            (&wholes[0].vertex, &wholes[0].object)
        );
        assert_eq!(
            (&whole.groups, &whole.group),
            (&wholes[0].groups, &wholes[0].group)
        );
    }
}

#[test]
fn unknown_extensions_are_named() {
    let error = zvf_files::open(Path::new("a.xyz"), &FileReadOptions::default())
        .err()
        .unwrap();
    assert!(matches!(error.fault, FileFault::Extension(_)));
}

/// Text without a last line tells its end only where a line is cut.
#[test]
fn damaged_text_is_refused_or_read() {
    for (name, text) in [
        ("a.obj", samples::OBJ),
        ("a.ply", samples::PLY),
        ("a.stl", samples::STL),
    ] {
        prefixes(name, text.as_bytes(), true);
        flips(name, text.as_bytes(), 27);
    }
}

#[test]
fn damaged_glb_is_refused_or_read() {
    let glb = samples::glb();
    prefixes("a.glb", &glb, false);
    flips("a.glb", &glb, 27);
}

/// Scenes that would take more memory or time than their file, or that are not read.
#[test]
fn hostile_scenes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.glb");
    let data = [0; 36];
    let error = |nodes: &str, meshes: &str, accessor: &str, view: &str| {
        let scene = format!(
            r#"{{"scenes":[{{"nodes":[0]}}],"nodes":[{nodes}],"meshes":[{meshes}],
            "buffers":[{{"byteLength":36}}],"bufferViews":[{{"buffer":0,{view}}}],
            "accessors":[{{"bufferView":0,"componentType":5126,"type":"VEC3",{accessor}}}]}}"#
        );
        fs::write(&path, samples::glb_of(scene.as_bytes(), &data)).unwrap();
        read(&path).err().unwrap_or_default()
    };
    let node = r#"{"mesh":0}"#;
    let mesh = r#"{"primitives":[{"attributes":{"POSITION":0}}]}"#;
    let (three, whole) = (r#""count":3"#, r#""byteLength":36"#);
    assert_eq!(error(node, mesh, three, whole), "");
    for (nodes, meshes, accessor, view, expected) in [
        (r#"{"children":[0]}"#, mesh, three, whole, "form a tree"),
        (
            r#"{"children":[1,2]},{"mesh":0},{"mesh":0}"#,
            mesh,
            three,
            whole,
            "several nodes",
        ),
        (r#"{"mesh":7}"#, mesh, three, whole, "no such mesh"),
        (
            node,
            mesh,
            r#""count":4294967295"#,
            whole,
            "an accessor needs",
        ),
        (node, mesh, r#""count":4"#, whole, "an accessor needs"),
        (
            node,
            mesh,
            three,
            r#""byteLength":37"#,
            "the view of an accessor needs",
        ),
        (
            node,
            mesh,
            r#""count":36"#,
            r#""byteLength":36,"byteStride":0"#,
            "rows overlap",
        ),
        (node, mesh, r#""count":3,"sparse":{}"#, whole, "sparse"),
        (node, mesh, r#""count":-3"#, whole, "whole number"),
        (
            r#"{"mesh":0,"scale":[1e308,1,1],"translation":["a"]}"#,
            mesh,
            three,
            whole,
            "translation",
        ),
    ] {
        let found = error(nodes, meshes, accessor, view);
        assert!(found.contains(expected), "{expected}: {found}");
    }
    // Primitives that share their data are bounded by its size.
    let primitive = r#"{"attributes":{"POSITION":0}}"#;
    let many = format!(r#"{{"primitives":[{}]}}"#, [primitive; 40].join(","));
    assert!(error(node, &many, three, whole).contains("share their data"));
    let scene = r#"{"extensionsUsed":["KHR_draco_mesh_compression"]}"#;
    fs::write(&path, samples::glb_of(scene.as_bytes(), &data)).unwrap();
    assert!(read(&path).unwrap_err().contains("Draco"));
}

/// Every prefix of a member of a graph in a folder is refused or read.
#[test]
fn damaged_geff_is_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geff");
    let members = samples::geff_members();
    for (member, bytes) in &members {
        let file = path.join(member);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    read(&path).unwrap();
    for (member, bytes) in &members {
        for length in (0..bytes.len()).step_by((bytes.len() / 40).max(1)) {
            fs::write(path.join(member), &bytes[..length]).unwrap();
            if let Err(error) = read(&path) {
                assert!(error.contains("a.geff"), "{member}, {length}: {error}");
            }
        }
        fs::write(path.join(member), bytes).unwrap();
    }
}

/// Files that unpack to more than the limit are refused, before they fill the memory or the disk.
#[test]
fn bombs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = |name: &str, bytes: &[u8], limit: u64| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let mut options = FileReadOptions::default();
        options.unpacked = limit;
        let opened = zvf_files::open(&path, &options).map_err(|error| chain(&error));
        let read = opened.and_then(|mut reader| {
            zvf_files::read_whole(reader.as_mut()).map_err(|error| chain(error.as_ref()))
        });
        read.map(|_| ()).unwrap_err()
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&vec![0; 8 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    for name in [
        "a.trk",
        "a.tck",
        "a.swc",
        "a.ply",
        "a.obj",
        "a.stl",
        "a.las",
        "a.laz",
        "a.gii",
        "a.graphml",
    ] {
        let error = error(&format!("{name}.gz"), &packed, 1 << 20);
        assert!(
            error.contains("unpacks to more than 1048576 bytes"),
            "{error}"
        );
    }
    let random = &mut Random::new(29);
    let members = samples::trx_members(random);
    for (name, bytes) in [
        ("a.trx", samples::trx(&members, CompressionMethod::Deflated)),
        ("a.laz", samples::laz()),
        ("a.gii", samples::GIFTI.into()),
    ] {
        let error = error(name, &bytes, 16);
        assert!(error.contains("unpacks to more than 16 bytes"), "{error}");
    }
    // The arrays have 36, 12 and 12 bytes.
    let error = error("a.gii", samples::GIFTI.as_bytes(), 50);
    assert!(error.contains("unpacks to more than 50 bytes"), "{error}");
}

/// Values of other vertices than those of the surface are not decoded.
#[test]
fn values_of_gifti_are_counted_before_they_are_decoded() {
    let bomb = samples::GIFTI.replace("Dim0=\"3\" Encoding", "Dim0=\"4000000000\" Encoding");
    assert_ne!(bomb, samples::GIFTI);
    let error = refused("a.gii", bomb.as_bytes());
    let reason = "has values of 4000000000 vertices, but the surface has 3";
    assert!(error.contains(reason), "{error}");
}

/// Ids of SWC files come from a list or from a table.
#[test]
fn ids_of_swc_files_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["a.swc", "b.SWC", "c d.swc"] {
        fs::write(at(name), "1 1 0 0 0 1 -1\n").unwrap();
    }
    let read = |ids: FileObjectIds| {
        let mut options = FileReadOptions::default();
        options.ids = Some(ids);
        let mut reader = zvf_files::open(folder.path(), &options).map_err(|error| chain(&error))?;
        let whole =
            zvf_files::read_whole(reader.as_mut()).map_err(|error| chain(error.as_ref()))?;
        Ok::<_, String>(whole.owners().ids().unwrap().to_vec())
    };
    assert_eq!(
        read(FileObjectIds::List(vec![9, 4, 17])),
        Ok(vec![9, 4, 17])
    );
    let table = |text: &str| {
        fs::write(at("ids.csv"), text).unwrap();
        read(FileObjectIds::Table(at("ids.csv")))
    };
    let ids = Ok(vec![7, 5, 3]);
    assert_eq!(table("name,id\nc d.swc,3\nb,5\n\"a\",7\nother,7\n"), ids);
    assert_eq!(table("a\t7\nb.swc\t5\nc d\t3\n"), ids);
    for (found, reason) in [
        (
            read(FileObjectIds::List(vec![1, 2])),
            "2 for 3 files; give an id for each file",
        ),
        (
            read(FileObjectIds::List(vec![1, 2, 1])),
            "an id is 1; it occurs twice",
        ),
        (
            read(FileObjectIds::List(vec![1, 2, -3])),
            "an id is -3; ids are not negative",
        ),
        (
            table("a,1\nb,2\n"),
            "ids.csv: the name is c d; the table of ids has no line",
        ),
        (table("a,1\na.swc,2\n"), "line 2: \"a\" occurs twice"),
        (table("a,1\nb,x\n"), "line 2: \"x\" is not a number"),
    ] {
        let error = found.unwrap_err();
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
    let mut options = FileReadOptions::default();
    options.ids = Some(FileObjectIds::List(vec![1]));
    fs::write(at("a.obj"), "v 0 0 0\n").unwrap();
    let error = zvf_files::open(&at("a.obj"), &options).err().unwrap();
    assert!(chain(&error).contains("ids are given for .swc files"));
}

#[test]
fn damaged_swc_is_refused_or_read() {
    let text = samples::swc();
    prefixes("a.swc", text.as_bytes(), true);
    flips("a.swc", text.as_bytes(), 26);
    let cases = [
        (
            "1 1 0 0 0 1 -1\n1 1 0 0 0 1 -1\n",
            "line 2: \"the id 1\" occurs twice",
        ),
        (
            "1 1 0 0 0 1 9\n",
            "line 1: the parent is 9; no sample has this id",
        ),
        (
            "1 1 0 0 0 1 1\n",
            "line 1: the parent is 1; the sample is its own ancestor",
        ),
        (
            "1 1 0 0 0 1 3\n2 1 0 0 0 1 1\n3 1 0 0 0 1 2\n",
            "its own ancestor",
        ),
        ("1 1 0 0 0 1\n", "line 1: the parent is absent"),
        (
            "1 1 0 x 0 1 -1\n",
            "line 1: \"x\" is not a number; expected y",
        ),
        ("1 1 0 0 nan 1 -1\n", "a coordinate is NaN"),
        (
            "1 1 0 0 0 nan -1\n",
            "line 1: the radius is NaN; it is a finite number",
        ),
        ("1 1 0 0 0 1 0\n", "a root has the parent -1"),
        ("# nothing\n", "holds no vertices"),
    ];
    for (text, reason) in cases {
        let error = refused("a.swc", text.as_bytes());
        assert!(error.contains(reason), "{reason:?} not in {error:?}");
    }
}

/// Regression test: a pipe was read forever, and a symbolic link had the length of its text.
#[cfg(unix)]
#[test]
fn members_of_folders_are_regular_files_or_links_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trx");
    for (name, bytes) in samples::trx_members(&mut Random::new(31)) {
        let member = path.join(name);
        fs::create_dir_all(member.parent().unwrap()).unwrap();
        fs::write(member, bytes).unwrap();
    }
    let vertices = read(&path).unwrap();
    let (member, other) = (
        path.join("positions.3.float32"),
        folder.path().join("other"),
    );
    fs::rename(&member, &other).unwrap();
    std::os::unix::fs::symlink(&other, &member).unwrap();
    assert_eq!(read(&path), Ok(vertices));
    fs::remove_file(&member).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&member).status();
    assert!(made.unwrap().success());
    let error = read(&path).unwrap_err();
    assert!(error.contains("not a regular file"), "{error}");
}
