"""An API server that is played: it stores, selects, patches and tells what changes.

It plays what our code sends and reads back. What a real server defaults, drops, refuses or
authorises is not there: tests on a real server show that (`tests/control_plane`). What is there is
held against a real server by `tests/control_plane/test_fake_api.py`.

`FakeApi` implements `dra_driver.kube.api.Api` in the test's process. `FakeServer` serves one by
HTTP, to our own client and to our programs.
"""
