"""What tests of the export to Anki share: an empty collection in Anki's own engine, and an import into it."""

from collections.abc import Iterator

import pytest
from anki.collection import Collection, ImportAnkiPackageOptions, ImportAnkiPackageRequest
from anki_cards import MONDAY

from disttutor.cards.anki import package


@pytest.fixture
def collection(tmp_path) -> Iterator[Collection]:
    opened = Collection(str(tmp_path / "collection.anki2"))
    yield opened
    assert opened.fix_integrity()[1]
    opened.close()


@pytest.fixture
def bring(collection, tmp_path):
    """`bring(cards, when)` exports and imports, and says how many notes were (new, updated, neither)."""
    def bring(cards, when=MONDAY):
        path = tmp_path / "cards.apkg"
        package.export(cards, path, timestamp=when)
        request = ImportAnkiPackageRequest(package_path=str(path), options=ImportAnkiPackageOptions())
        log = collection.import_anki_package(request).log
        assert not (log.conflicting or log.missing_notetype or log.missing_deck or log.first_field_match)
        return len(log.new), len(log.updated), len(log.duplicate)
    return bring
