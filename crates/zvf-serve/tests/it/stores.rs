//! Stores to serve.

use zvf::{
    Column, CreateOptions, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn,
    VertexOwners,
};

/// A folder with stores.
pub(crate) struct TestStores {
    pub(crate) folder: tempfile::TempDir,
}

impl TestStores {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn address(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Creates a store with chunks of 25 units and returns its address.
    pub(crate) fn create(
        &self,
        name: &str,
        kind: GeometryKind,
        geometry: &GeometryBuilder,
    ) -> String {
        let address = self.address(name);
        let design = Design::new(kind).chunk_shape([25.0; 3]);
        let options = CreateOptions::default();
        let created = zvf::create(
            address.as_str(),
            geometry.clone().build().unwrap(),
            design,
            &options,
        );
        block_on(created).unwrap();
        address
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

/// Returns numbers between 0 and 100 that look random.
fn spread(count: u32) -> impl Iterator<Item = f32> {
    (0..count).map(|at| {
        let hash = at.wrapping_mul(2_654_435_761) >> 8;
        f32::from(u16::try_from(hash % 50_000).unwrap()) / 500.0
    })
}

/// Returns points with an object and a number each; a third of them lie close together.
pub(crate) fn points(count: u32) -> GeometryBuilder {
    let positions = spread(count * 3).enumerate().map(|(at, along)| {
        if (at / 3) % 3 == 0 {
            40.0 + along * 0.05
        } else {
            along
        }
    });
    let mut geometry = Geometry::builder(NumericColumn::float32(3, positions))
        .object_ids((0..count).map(|at| i64::from(at / 50)).collect());
    let numbers = (0..count).map(|at| f32::from(u16::try_from(at % 1000).unwrap()));
    geometry.vertex = vec![Column::new("depth", NumericColumn::float32(1, numbers))];
    geometry
}

/// Returns paths of `length` points.
pub(crate) fn paths(count: u32, length: u32) -> GeometryBuilder {
    let starts: Vec<f32> = spread(count * 3).collect();
    let mut positions = Vec::new();
    for path in 0..usize::try_from(count).unwrap() {
        for step in 0..u16::try_from(length).unwrap() {
            for axis in 0..3 {
                let pace = f32::from(u16::try_from(path % 7 + axis).unwrap());
                positions.push(starts[path * 3 + axis] * 0.6 + f32::from(step) * 0.4 * pace);
            }
        }
    }
    Geometry::builder(NumericColumn::float32(3, positions)).paths(
        (0..=count).map(|at| u64::from(at * length)).collect(),
        (0..count).map(i64::from).collect::<Vec<_>>(),
    )
}

/// Returns paths in three groups with names: 0 and 2 have members, and one object is in both.
pub(crate) fn grouped_paths(count: u32, length: u32) -> GeometryBuilder {
    let mut geometry = paths(count, length);
    let left = (0..i64::from(count)).filter(|object| object % 3 == 0);
    let right = (0..i64::from(count)).filter(|object| object % 5 == 3);
    geometry.groups = [(0, left.collect()), (1, Vec::new()), (2, right.collect())].into();
    let names = [Some("left arc"), None, Some("right arc")];
    geometry.group = vec![
        Column::text("name", names),
        Column::new("weight", NumericColumn::float32(1, [0.5, 0.0, 2.0])),
    ];
    geometry
}

/// Returns a graph whose vertices belong to objects of 100; edges have a number each.
pub(crate) fn graph(vertices: u32) -> GeometryBuilder {
    let mut geometry = Geometry::builder(NumericColumn::float32(3, spread(vertices * 3)))
        .object_ids((0..vertices).map(|at| i64::from(at / 100)).collect());
    let near = |at: u32, step: u32| (at / 100 == (at + step) / 100).then(|| [at, at + step]);
    let edges: Vec<[u32; 2]> = (0..vertices)
        .flat_map(|at| [near(at, 1), near(at, 7)])
        .flatten()
        .filter(|[_, to]| *to < vertices)
        .collect();
    geometry.links.ends = edges.iter().flatten().copied().map(i64::from).collect();
    let weights = (0..edges.len()).map(|at| f32::from(u16::try_from(at % 997).unwrap()));
    geometry.link = vec![Column::new("weight", NumericColumn::float32(1, weights))];
    geometry
}

/// Returns trees: each vertex of an object but the first has an earlier one as its parent.
pub(crate) fn trees(count: u32, size: u32) -> GeometryBuilder {
    let vertices = count * size;
    let mut geometry = Geometry::builder(NumericColumn::float32(3, spread(vertices * 3)))
        .object_ids((0..vertices).map(|at| i64::from(at / size)).collect())
        .links(
            2,
            (0..vertices)
                .filter(|at| at % size > 0)
                .flat_map(|at| {
                    let parent = at - at % size + (at % size - 1) / 2;
                    [i64::from(at), i64::from(parent)]
                })
                .collect(),
        );
    let radii = spread(vertices);
    geometry.vertex = vec![Column::new("radius", NumericColumn::float32(1, radii))];
    geometry
}

/// Returns a surface of triangles over a square grid, as one object.
pub(crate) fn surface(side: u32) -> GeometryBuilder {
    let positions = (0..side * side).flat_map(|at| {
        let [x, y] = [at % side, at / side].map(|along| f32::from(u16::try_from(along).unwrap()));
        [x, y, (x * 0.3).sin() * 5.0 + 50.0]
    });
    Geometry::builder(NumericColumn::float32(3, positions)).links(
        3,
        (0..side - 1)
            .flat_map(|y| (0..side - 1).map(move |x| i64::from(y * side + x)))
            .flat_map(|corner| {
                let side = i64::from(side);
                [
                    corner,
                    corner + 1,
                    corner + side,
                    corner + 1,
                    corner + side + 1,
                    corner + side,
                ]
            })
            .collect(),
    )
}

/// Returns surfaces beside each other, an object each.
pub(crate) fn surfaces(count: u32, side: u32) -> GeometryBuilder {
    let one = surface(side);
    let vertices = side * side;
    let positions: Vec<f32> = one.positions.to_vec().unwrap();
    let all = (0..count).flat_map(|number| {
        let step = f32::from(u16::try_from(number).unwrap()) * 3.0;
        positions.iter().map(move |along| along + step)
    });
    let mut geometry = Geometry::builder(NumericColumn::float32(3, all.collect::<Vec<_>>())).links(
        3,
        (0..count)
            .flat_map(|number| {
                let first = i64::from(number * vertices);
                one.links.ends.iter().map(move |end| first + end)
            })
            .collect(),
    );
    let objects = (0..count * vertices).map(|at| i64::from(at / vertices));
    geometry.owners = VertexOwners::Vertices(objects.collect());
    geometry
}
