//! In-place changes compared with the same changes in memory.

use std::{fs, path::Path};

use proptest::prelude::*;
use tempfile::TempDir;
use zvf_dense::{
    DenseArray, DenseError, DenseSink, Hyperslab, MemoryArray, NumpyDtype,
    b2nd::{B2nd, B2ndDesign, B2ndEditor, B2ndError, B2ndWriter, pack, unpack},
};
use zvf_testkit::golden::Golden;

use super::{
    recorded,
    written::{picked, sample},
};

/// An array in memory, the model of the tests.
struct Model {
    shape: Vec<u64>,
    size: usize,
    bytes: Vec<u8>,
}

impl Model {
    fn places(&self, selection: &Hyperslab) -> Vec<usize> {
        let items = self.bytes.len() / self.size;
        let numbers: Vec<u8> = (0..u32::try_from(items).unwrap())
            .flat_map(u32::to_le_bytes)
            .collect();
        let flat = picked(&self.shape, 4, &numbers, selection);
        let places = flat.as_chunks::<4>().0.iter();
        places
            .map(|place| usize::try_from(u32::from_le_bytes(*place)).unwrap())
            .collect()
    }

    fn update(&mut self, selection: &Hyperslab, bytes: &[u8]) {
        for (place, item) in self
            .places(selection)
            .into_iter()
            .zip(bytes.chunks(self.size))
        {
            self.bytes[place * self.size..][..self.size].copy_from_slice(item);
        }
    }

    fn resize(&mut self, shape: &[u64]) {
        let len = shape.iter().product::<u64>();
        let bytes = vec![0; usize::try_from(len).unwrap() * self.size];
        let old = Model {
            shape: std::mem::replace(&mut self.shape, shape.to_vec()),
            size: self.size,
            bytes: std::mem::replace(&mut self.bytes, bytes),
        };
        let common: Vec<u64> = old
            .shape
            .iter()
            .zip(shape)
            .map(|(a, b)| *a.min(b))
            .collect();
        let common = Hyperslab::new(&vec![0; shape.len()], &common, None).unwrap();
        let kept = picked(&old.shape, self.size, &old.bytes, &common);
        self.update(&common, &kept);
    }
}

#[track_caller]
fn check(array: &B2nd, model: &Model) {
    assert_eq!(array.shape(), model.shape);
    assert!(array.slice(&Hyperslab::whole(&model.shape)).unwrap() == model.bytes);
}

#[derive(Clone, Debug)]
enum Change {
    Update([u64; 2], [u64; 2], u64, u8),
    Resize([u64; 2]),
    Append(usize, u64),
    Layer,
    Commit,
}

fn change() -> impl Strategy<Value = Change> {
    let pair = || [0..12_u64, 0..12_u64];
    prop_oneof![
        3 => (pair(), pair(), 1..4_u64, 0..4_u8).prop_map(|(a, b, s, k)| Change::Update(a, b, s, k)),
        2 => pair().prop_map(Change::Resize),
        1 => (0..2_usize, 0..5_u64).prop_map(|(axis, rows)| Change::Append(axis, rows)),
        1 => Just(Change::Layer),
        1 => Just(Change::Commit),
    ]
}

fn write(path: &Path, design: &B2ndDesign, bytes: &[u8], sparse: bool) {
    let mut writer = Box::new(if sparse {
        B2ndWriter::create_directory(path, design).unwrap()
    } else {
        B2ndWriter::create(path, design).unwrap()
    });
    writer.put_all(bytes).unwrap();
    writer.finish().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(60)))]

    #[test]
    fn edits_match_an_array_in_memory(
        shape in [1..10_u64, 1..10_u64],
        chunk in [1..7_u64, 1..7_u64],
        block in [1..7_u64, 1..7_u64],
        changes in prop::collection::vec(change(), 1..12),
        sparse: bool,
        caterva: bool,
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("array.b2nd");
        let block = [block[0].min(chunk[0]), block[1].min(chunk[1])];
        let mut design = B2ndDesign::new(&shape, NumpyDtype::parse("<i2").unwrap()).with_chunks(&chunk, &block);
        if caterva {
            design = design.for_caterva();
        }
        let len = usize::try_from(shape[0] * shape[1]).unwrap() * 2;
        let mut model = Model { shape: shape.to_vec(), size: 2, bytes: sample(len, 2) };
        write(&path, &design, &model.bytes, sparse);
        let mut editor = B2ndEditor::open(&path).unwrap();
        let mut layers = 0_u8;
        for change in changes {
            match change {
                Change::Update(a, b, step, kind) => {
                    let clip = |k: usize| { let e = model.shape[k]; (a[k].min(b[k]).min(e), a[k].max(b[k]).min(e)) };
                    let (rows, columns) = (clip(0), clip(1));
                    let selection = Hyperslab::new(&[rows.0, columns.0], &[rows.1, columns.1], Some(&[step, 1])).unwrap();
                    let bytes = sample(usize::try_from(selection.byte_len(2).unwrap()).unwrap(), kind);
                    editor.update(&selection, &bytes).unwrap();
                    model.update(&selection, &bytes);
                }
                Change::Resize(shape) => {
                    editor.resize(&shape).unwrap();
                    model.resize(&shape);
                }
                Change::Append(axis, rows) => {
                    let other = model.shape[1 - axis];
                    if other == 0 { continue; }
                    let bytes = sample(usize::try_from(rows * other).unwrap() * 2, 1);
                    editor.append(axis, &bytes).unwrap();
                    let mut shape = model.shape.clone();
                    shape[axis] += rows;
                    let mut start = vec![0, 0];
                    start[axis] = model.shape[axis];
                    model.resize(&shape);
                    model.update(&Hyperslab::new(&start, &shape, None).unwrap(), &bytes);
                }
                Change::Layer => {
                    layers += 1;
                    editor.set_vlmetalayer("count", Some(&[layers; 9]));
                }
                Change::Commit => {
                    editor.commit().unwrap();
                    editor = B2ndEditor::open(&path).unwrap();
                }
            }
            check(editor.array(), &model);
        }
        editor.commit().unwrap();
        let array = B2nd::open(&path).unwrap();
        check(&array, &model);
        let found = array.vlmetalayers().next().map(|(_, body)| body.to_vec());
        prop_assert_eq!(found, (layers > 0).then(|| vec![layers; 9]));
        if sparse {
            check_numbers(&path);
        }
    }
}

/// Checks the limit of c-blosc2 for directories: the number of each file plus the length of a chunk
/// header is at most the total length of all files.
fn check_numbers(path: &Path) {
    let files = fs::read_dir(path).unwrap().map(Result::unwrap);
    let chunks: Vec<(u64, u64)> = files
        .filter_map(|file| {
            let name = file.file_name().into_string().unwrap();
            let number = name.strip_suffix(".chunk")?;
            let number = u64::from_str_radix(number, 16).unwrap();
            Some((number, file.metadata().unwrap().len()))
        })
        .collect();
    let bytes: u64 = chunks.iter().map(|(_, len)| len).sum();
    for (number, _) in chunks {
        assert!(number + 32 <= bytes, "chunk file {number}, {bytes} bytes");
    }
}

#[test]
fn sparse_directories_of_mostly_zeros_use_low_file_numbers() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("array.b2nd");
    let design = B2ndDesign::new(&[60], NumpyDtype::parse("|u1").unwrap()).with_chunks(&[1], &[1]);
    let mut model = Model {
        shape: vec![60],
        size: 1,
        bytes: vec![0; 60],
    };
    model.bytes[58] = 7;
    write(&path, &design, &model.bytes, true);
    check_numbers(&path);
    let mut change = |range: [u64; 2], value: u8| {
        let mut editor = B2ndEditor::open(&path).unwrap();
        let selection = Hyperslab::new(&[range[0]], &[range[1]], None).unwrap();
        let bytes = vec![value; usize::try_from(range[1] - range[0]).unwrap()];
        editor.update(&selection, &bytes).unwrap();
        editor.commit().unwrap();
        model.update(&selection, &bytes);
        check(&B2nd::open(&path).unwrap(), &model);
        check_numbers(&path);
    };
    change([0, 60], 3);
    change([0, 58], 0);
    change([58, 59], 5);
    change([59, 60], 0);
}

/// Growth exposes zeros, not the elements before an earlier shrink, even by another program.
#[test]
fn growth_hides_elements_of_an_earlier_shrink() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shrunk.b2nd");
    fs::write(&path, Golden::open("b2nd").file("l_shrunk.b2nd")).unwrap();
    let mut editor = B2ndEditor::open(&path).unwrap();
    let shape = editor.array().shape().to_vec();
    let whole = Hyperslab::whole(&shape);
    let bytes = editor.array().slice(&whole).unwrap().into();
    let mut model = Model {
        shape: shape.clone(),
        size: 4,
        bytes,
    };
    let grown: Vec<u64> = shape.iter().map(|extent| extent + 9).collect();
    editor.resize(&grown).unwrap();
    model.resize(&grown);
    check(editor.array(), &model);
}

#[test]
fn changes_are_invisible_before_commit() {
    let folder = TempDir::new().unwrap();
    let dtype = NumpyDtype::parse("|u1").unwrap();
    let design = B2ndDesign::new(&[6], dtype).with_chunks(&[4], &[2]);
    for sparse in [false, true] {
        let path = folder.path().join(format!("{sparse}.b2nd"));
        write(&path, &design, &[1, 2, 3, 4, 5, 6], sparse);
        let whole = Hyperslab::whole(&[6]);
        let mut editor = B2ndEditor::open(&path).unwrap();
        editor.update(&whole, &[9; 6]).unwrap();
        assert_eq!(
            B2nd::open(&path).unwrap().slice(&whole).unwrap(),
            [1, 2, 3, 4, 5, 6]
        );
        drop(editor);
        // Leftovers of an interrupted change do no harm.
        let mut editor = B2ndEditor::open(&path).unwrap();
        editor.update(&whole, &[7; 6]).unwrap();
        editor.commit().unwrap();
        assert_eq!(B2nd::open(&path).unwrap().slice(&whole).unwrap(), [7; 6]);
    }
}

/// Recorded frames of any writer can be edited.
#[test]
fn recorded_frames_can_be_edited() {
    let golden = Golden::open("b2nd");
    let folder = TempDir::new().unwrap();
    let mut changed = 0;
    for (name, bytes) in recorded(&golden) {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let mut editor = B2ndEditor::open(&path).unwrap();
        let shape = editor.array().shape().to_vec();
        let size = usize::try_from(editor.array().dtype().size()).unwrap();
        let whole = editor.array().slice(&Hyperslab::whole(&shape));
        let bytes = whole.unwrap().into();
        let mut model = Model { shape, size, bytes };
        if model.shape.is_empty() || model.shape.contains(&0) {
            continue;
        }
        let one = Hyperslab::new(
            &vec![0; model.shape.len()],
            &vec![1; model.shape.len()],
            None,
        )
        .unwrap();
        // A float that survives truncation of its mantissa.
        let mut value = vec![0; size];
        value[size - 1] = 0x41;
        editor.update(&one, &value).unwrap();
        model.update(&one, &value);
        let mut shape = model.shape.clone();
        shape[0] += 3;
        editor.resize(&shape).unwrap();
        model.resize(&shape);
        editor.commit().unwrap();
        check(&B2nd::open(&path).unwrap(), &model);
        changed += 1;
    }
    assert!(changed > 60, "{changed}");
}

/// Creates an array of `<i2` numbers in memory.
fn numbers(dtype: &str, shape: &[u64], values: &[i16]) -> MemoryArray {
    let bytes = values.iter().flat_map(|value| {
        if dtype.starts_with('>') {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    });
    let dtype = NumpyDtype::parse(dtype).unwrap();
    MemoryArray::new("other", dtype, shape.to_vec(), bytes.collect()).unwrap()
}

#[track_caller]
fn error_of(result: Result<(), DenseError>) -> B2ndError {
    let error = result.unwrap_err();
    assert!(matches!(error, DenseError::B2nd { .. }), "{error:?}");
    let DenseError::B2nd { source, .. } = error else {
        unreachable!()
    };
    source
}

#[test]
fn other_arrays_are_appended_and_written_to_boxes() {
    let folder = TempDir::new().unwrap();
    // The type of the array, that of the elements, and that of the values then read.
    for (caterva, own, given) in [
        (false, ">i2", "<i2"),
        (false, "<i2", ">i2"),
        (true, "<i2", "<i2"),
        (true, ">i2", "<i2"),
    ] {
        let path = folder.path().join("array");
        let dtype = NumpyDtype::parse(own).unwrap();
        let mut design = B2ndDesign::new(&[3, 4], dtype.clone()).with_chunks(&[2, 3], &[1, 2]);
        if caterva {
            design = design.for_caterva();
        }
        write(&path, &design, &[0; 24], false);
        let mut editor = B2ndEditor::open(&path).unwrap();
        if caterva {
            editor = editor.with_dtype(dtype.clone()).unwrap();
        }
        editor
            .append_from(0, &numbers(given, &[2, 4], &[1, 2, 3, 4, 5, 6, 7, 8]))
            .unwrap();
        let rows = Hyperslab::new(&[0, 1], &[5, 4], Some(&[2, 2])).unwrap();
        editor
            .update_from(&rows, &numbers(given, &[3, 2], &[-1, -2, -3, -4, -5, -6]))
            .unwrap();
        for result in [
            editor.update_from(&rows, &numbers(given, &[2, 3], &[0; 6])),
            editor.append_from(1, &numbers(given, &[4, 1], &[0; 4])),
        ] {
            let error = error_of(result);
            assert!(matches!(error, B2ndError::OtherShape { .. }), "{error:?}");
        }
        let error = error_of(editor.append_from(2, &numbers(given, &[5, 4], &[0; 20])));
        assert!(
            matches!(error, B2ndError::NoAxis { axis: 2, axes: 2 }),
            "{error:?}"
        );
        let half = NumpyDtype::parse("<f2").unwrap();
        let floats = MemoryArray::new("floats", half, vec![1, 4], vec![0; 8]).unwrap();
        let error = error_of(editor.append_from(0, &floats));
        assert!(matches!(error, B2ndError::OtherDtype { .. }), "{error:?}");
        editor.commit().unwrap();
        let array = B2nd::open(&path).unwrap().with_dtype(dtype).unwrap();
        let expected = [
            0, -1, 0, -2, 0, 0, 0, 0, 0, -3, 0, -4, 1, 2, 3, 4, 5, -5, 7, -6,
        ];
        let expected = numbers(own, &[5, 4], &expected);
        let whole = Hyperslab::whole(&[5, 4]);
        assert_eq!(
            array.slice(&whole).unwrap(),
            expected.slice(&whole).unwrap()
        );
    }
}

#[test]
fn items_of_caterva_take_a_type_of_their_size() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("array");
    let parse = |text| NumpyDtype::parse(text).unwrap();
    let design = B2ndDesign::new(&[2], parse("<f4"));
    write(&path, &design.clone().for_caterva(), &[1; 8], false);
    let open = || B2nd::open(&path).unwrap();
    assert_eq!(open().dtype(), &parse("V4"));
    assert_eq!(
        open().with_dtype(parse("<f4")).unwrap().dtype(),
        &parse("<f4")
    );
    let error = error_of(open().with_dtype(parse("<f8")).map(drop));
    assert!(matches!(error, B2ndError::Typesize { .. }), "{error:?}");
    // Elements of any type of this size, as bytes.
    let mut editor = B2ndEditor::open(&path).unwrap();
    let other = MemoryArray::new("other", parse(">i4"), vec![1], vec![1, 2, 3, 4]).unwrap();
    editor.append_from(0, &other).unwrap();
    let last = Hyperslab::new(&[2], &[3], None).unwrap();
    assert_eq!(editor.array().slice(&last).unwrap(), [1, 2, 3, 4]);
    write(&path, &design, &[1; 8], false);
    assert_eq!(
        open().with_dtype(parse("<f4")).unwrap().dtype(),
        &parse("<f4")
    );
    let error = error_of(open().with_dtype(parse("<i4")).map(drop));
    assert!(matches!(error, B2ndError::OtherDtype { .. }), "{error:?}");
}

#[test]
fn metalayers_of_the_header_keep_their_length() {
    let folder = TempDir::new().unwrap();
    for (form, sparse) in [("b2nd", false), ("caterva", false), ("caterva", true)] {
        let path = folder.path().join(format!("{form} {sparse}"));
        let body = |text: &str| pack(&text.into()).unwrap();
        let mut design = B2ndDesign::new(&[2], NumpyDtype::parse("|u1").unwrap())
            .with_metalayer("unit", &body("mm"));
        if form == "caterva" {
            design = design.for_caterva();
        }
        write(&path, &design, &[1, 2], sparse);
        let mut editor = B2ndEditor::open(&path).unwrap();
        editor.set_metalayer("unit", &body("um")).unwrap();
        let error = error_of(editor.set_metalayer("unit", &body("nanometre")));
        assert!(matches!(error, B2ndError::LayerLen { .. }), "{error:?}");
        for name in ["other", form] {
            let error = error_of(editor.set_metalayer(name, &body("mm")));
            assert_eq!(error, B2ndError::NoLayer(name.to_owned()));
        }
        editor.commit().unwrap();
        let array = B2nd::open(&path).unwrap();
        let layers: Vec<_> = array.metalayers().collect();
        assert_eq!(layers, [("unit", &body("um")[..])]);
        assert_eq!(unpack(layers[0].1), Some("um".into()));
    }
    assert_eq!(unpack(&vec![0x90; 1 << 21]), None);
}
