"""Behaviour suites: what an adapter must do, as classes of test methods that its author runs against it.

    class TestMyTable(TableSuite):
        @pytest.fixture
        def table(self):
            return MyTable(...)

A suite needs nothing but that fixture.
Every test uses names of its own, so that one table or bucket serves them all.
"""
