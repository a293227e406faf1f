//! A type-erased port returns the results of its port.

use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use zvf_model::{
    fetch::{
        AnyArray, CellOptions, CellRef, CellRequest, CellSource, Fetch, FetchError, FetchProblem,
        Fetched, Port,
    },
    key::Key,
    zarr::{Array, Node},
};

/// Responds with the request itself; each `KIND` is a separate type.
#[derive(Default)]
struct Echo<const KIND: u8> {
    dropped: AtomicBool,
    /// The options of the last call for cells.
    options: Mutex<CellOptions>,
}

struct EchoArray<const KIND: u8>(Key, Arc<Array>);

impl<const KIND: u8> CellSource for EchoArray<KIND> {
    fn node(&self) -> &Key {
        &self.0
    }

    fn metadata(&self) -> &Arc<Array> {
        &self.1
    }

    fn is_plain(&self) -> bool {
        KIND == 0
    }
}

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn error(key: &Key, problem: FetchProblem) -> FetchError {
    FetchError {
        key: key.clone(),
        problem,
        source: "no".into(),
    }
}

impl<const KIND: u8> Fetch for Echo<KIND> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        if node.is_root() {
            Err(error(node, FetchProblem::Damaged))
        } else {
            Ok(AnyArray::new(EchoArray::<KIND>(node.clone(), array)))
        }
    }

    async fn nodes(&self, _keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let _guard = OnDrop(&self.dropped);
        pending().await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        *self.options.lock().unwrap() = options;
        let response = |wanted: &CellRequest| match &wanted.cell {
            CellRef::Element(array, element) => {
                let array: &EchoArray<KIND> = array.downcast()?;
                let text = format!("{} {element:?} {:?}", array.0, wanted.part);
                let bytes = Bytes::from(text);
                Ok(Some(Fetched { bytes, size: 7 }))
            }
            CellRef::Child(key) => Err(error(key, FetchProblem::OverBudget)),
        };
        wanted.iter().map(response).collect()
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        Ok(vec![key.to_string()])
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        Ok(vec![Some(3); keys.len()])
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        Ok(vec![(prefix.to_string(), 5)])
    }

    fn budget(&self) -> u64 {
        100
    }

    fn at_once(&self) -> u64 {
        11
    }
}

/// Polls a future that is ready at once.
fn now<T>(work: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(work).poll(&mut context) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("nothing waits"),
    }
}

fn key(path: &str) -> Key {
    Key::parse(path).unwrap()
}

fn array(port: Port<'_>, path: &str) -> Result<AnyArray, FetchError> {
    let json = br#"{"zarr_format": 3, "node_type": "array", "shape": [9], "data_type": "int8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"], "fill_value": 0}"#;
    let Node::Array(array) = Node::parse(&key("a/zarr.json"), json).unwrap() else {
        unreachable!("it is an array")
    };
    let node = match path {
        "" => Key::root(),
        path => key(path),
    };
    port.array(&node, Arc::new(array))
}

fn element(array: &AnyArray, at: u64) -> CellRequest {
    CellRequest {
        cell: CellRef::Element(array.clone(), vec![at, at]),
        part: (at > 1).then_some(0..at),
    }
}

#[test]
fn cells_arrive_in_order_and_fail_separately() {
    let (echo, other) = (Echo::<0>::default(), Echo::<1>::default());
    let port = Port::new(&echo);
    let own = array(port, "a/b").unwrap();
    let strange = array(Port::new(&other), "c").unwrap();
    let child = CellRequest {
        cell: CellRef::Child(key("d")),
        part: None,
    };
    let wanted = [
        element(&strange, 1),
        element(&own, 1),
        element(&strange, 2),
        child,
        element(&own, 2),
        element(&strange, 3),
    ];
    let responses = now(port.cells(&wanted))
        .into_iter()
        .map(|response| match response {
            Ok(cell) => String::from_utf8(cell.unwrap().bytes.into()).unwrap(),
            Err(error) => format!("{error}"),
        });
    let expected = [
        "c: cannot be read",
        "a/b [1, 1] None",
        "c: cannot be read",
        "d: takes more memory than the budget allows",
        "a/b [2, 2] Some(0..2)",
        "c: cannot be read",
    ];
    assert_eq!(responses.collect::<Vec<_>>(), expected);
    assert!(now(port.cells(&[])).is_empty());
}

#[test]
fn a_port_passes_its_options_on() {
    let echo = Echo::<0>::default();
    let port = Port::new(&echo).for_operator("ChunkScan");
    now(port.cells(&[]));
    let options = *echo.options.lock().unwrap();
    assert_eq!(options.operator, Some("ChunkScan"));
    assert!(!options.bypasses_cache);
    now(port.bypass_cache().cells(&[]));
    let options = *echo.options.lock().unwrap();
    assert_eq!(options.operator, Some("ChunkScan"));
    assert!(options.bypasses_cache);
    now(Port::new(&echo).cells(&[]));
    assert_eq!(*echo.options.lock().unwrap(), CellOptions::default());
}

#[test]
fn other_calls_return_the_results_of_the_inner_port() {
    let (echo, other) = (Echo::<0>::default(), Echo::<1>::default());
    let port = Port::new(&echo);
    let own = array(port, "a/b").unwrap();
    assert_eq!(own.node(), &key("a/b"));
    assert_eq!(own.metadata().shape, [9]);
    assert!(own.is_plain());
    assert!(!array(Port::new(&other), "a").unwrap().is_plain());
    assert_eq!(array(port, "").unwrap_err().problem, FetchProblem::Damaged);
    let a = key("a");
    assert_eq!(now(port.children(&a)).unwrap(), ["a"]);
    assert_eq!(
        now(port.sizes(&[a.clone(), a.clone()])).unwrap(),
        [Some(3); 2]
    );
    assert_eq!(now(port.files(&a)).unwrap(), [("a".to_owned(), 5)]);
    assert_eq!((port.budget(), port.at_once()), (100, 11));
}

#[test]
fn dropping_a_future_drops_that_of_the_inner_port() {
    let echo = Echo::<0>::default();
    let port = Port::new(&echo);
    {
        let keys = [key("a")];
        let mut work = pin!(port.nodes(&keys));
        let mut context = Context::from_waker(Waker::noop());
        assert!(work.as_mut().poll(&mut context).is_pending());
        assert!(!echo.dropped.load(Ordering::Relaxed));
    }
    assert!(echo.dropped.load(Ordering::Relaxed));
}
