"""A Zarr store that counts the requests an object store would receive."""

from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore, WrapperStore


class CountingStore(WrapperStore):
    """Counts each requested object or range, existing or not, each size or existence check, and
    each listing.

    It is not a subclass of LocalStore, whose files the reference reads directly, bypassing Zarr.
    """

    def __init__(self, store):
        super().__init__(store)
        self.requests = self.lists = self.bytes = 0

    @classmethod
    def local(cls, path):
        return cls(LocalStore(path, read_only=True))

    def with_read_only(self, read_only=False):
        # A copy would have counters of its own.
        return self

    async def get(self, key, prototype=None, byte_range=None):
        self.requests += 1
        found = await self._store.get(key, prototype or default_buffer_prototype(), byte_range)
        self.bytes += 0 if found is None else len(found)
        return found

    async def get_partial_values(self, prototype, key_ranges):
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    def _get_many(self, requests):
        # The wrapper's method would call the inner store.
        return Store._get_many(self, requests)

    async def exists(self, key):
        self.requests += 1
        return await self._store.exists(key)

    async def getsize(self, key):
        self.requests += 1
        return await self._store.getsize(key)

    async def getsize_prefix(self, prefix):
        return await Store.getsize_prefix(self, prefix)

    async def is_empty(self, prefix):
        self.lists += 1
        return await self._store.is_empty(prefix)

    def list(self):
        self.lists += 1
        return self._store.list()

    def list_prefix(self, prefix):
        self.lists += 1
        return self._store.list_prefix(prefix)

    def list_dir(self, prefix):
        self.lists += 1
        return self._store.list_dir(prefix)
