"""What efsmi prints, as seen in public dumps of its versions 1.2 to 1.7; the values are made up."""

from __future__ import annotations

BANNER = (
    """\
-------------------------------------------------------------------------------
--------------------- Enflame System Management Interface ---------------------
--------- Enflame Tech, All Rights Reserved. 2024-2025 Copyright (C) ----------
-------------------------------------------------------------------------------
"""
    + " " * 79
    + "\n"
)

LIST = """\
GCU    SN                Slot           ID           Bus             CPU Affinity     UUID
--------------------------------------------------------------------------------------------------
 0     A1B2C30410001     PCIE5 (X16)    1e36:c035    0000:0d:00.0    0-7,32-39        TPUA10000001
 1     A1B2C30410002     N/A            1e36:c035    0000:0f:00.0    0-7,32-39        TPUA10000002
"""

INSTANCE_ROW = "| 0      1g.6gb     1      5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11 |\n"

# `_` stands for a blank at a line's end.
QUERY = """\
DEV ID 0
    Driver Info
        Ver                     : 1.5.20260710
    Device Info
        Dev Name                : Enflame S60
        Dev UUID                : TPUA10000001
        Dev SN                  : A1B2C30410001___
        Dev PN                  : EFB-0000000-00______
        Dev MFD                 : 2025-1-1
        Health                  : True
    PCIe Info
        Vendor ID               : 1e36
        Device ID               : c035
        Domain                  : 0000
        Bus                     : 0d
        Dev                     : 00
        Func                    : 0
        Link Info_______________
            Max Link Speed      : Gen5
            Tx Throughput       : 0 MiB/s
    Power Info
        Power Capa              : 300 W
        Cur Power               : 99 W
        Dpm Level               : Sleep
    Device Mem Info
        Total Size              : 42976 MiB
        Reserved Size           : 1129 MiB
        Used Size               : 0 MiB
        Free Size               : 41847 MiB
    Temperature Info
        GCU Temp                : 35 ℃
    Device Usage Info
        GCU Usage               : 0.0 %
    ECC Mode
        Current                 : Enable
        Pending                 : Enable
    Error Records
        Total Error Count       : 3
        Reset Count             : 0
        Last Reset Date         : N/A
    Error Details
        User Triggered Reset    : 0
        SIP Error               : 3
""".replace("_", " ")

# Version 1.2: memory under other keys, the link's keys beside their heading, more sections.
OLD_QUERY = """\
DEV ID 0
    Driver Info
        Ver                     : 1.2.4.12
    Device Info
        Dev Name                : S60
        Dev UUID                : TPUA10000001
        Dev SN                  : A1B2C30410001
        Health                  : True
    PCIe Info
        Vendor ID               : 1e36
        Device ID               : c035
        Domain                  : 0000
        Bus                     : 0d
        Dev                     : 00
        Func                    : 0
        Link Info
        Max Link Speed          : Gen5
        Tx Throughput           : 0 MiB/s
    Clock Info
        Mem CLK                 : 7000 MHz
    Power Info
        Power Capa              : 300 W
        Cur Power               : N/A
    Device Mem Info
        Mem Size                : 42976 MiB
        Mem Usage               : 1129 MiB
        Mem Ecc                 : enable
    Temperature Info
        GCU Temp                : 39 C
    Voltage Info
        VDD GCU                 : 0.702 V
    ECC Mode
        Current                 : Enable
        Pending                 : Enable
    RMA Info
        Flags                   : False
        Total DBE               : 0
            MC0 DBE             : 0
    Power Cable
        Status                  : Normal
    VPU Info
        Encoder Usage           : 0 %
"""

SUMMARY = """\
+2026-01-01, 12:00:00 CST----------------------------------------------------+
| EFSMI    1.4.0.3         Driver Ver: 1.4.0.3                               |
|----------------------------------------------------------------------------|
|----------------------------------------------------------------------------|
| DEV    NAME                 | FW VER           | BUS-ID      ECC           |
| TEMP   Dpm   Pwr(Usage/Cap) | Mem     GCU Virt | DUsed       SN            |
|----------------------------------------------------------------------------|
| 0      Enflame S60          | 33.6.5           | 00:0d:00.0  Enable        |
| 71℃    Sleep    118W / 300W | 42976MiB Disable | 0%          A1B2C30410001 |
+----------------------------------------------------------------------------+
|----------------------------------------------------------------------------|
| 1      Enflame S60          | 33.6.5           | 00:0f:00.0  Enable        |
| 74℃    Sleep    121W / 300W | 42976MiB DRS     | 0%          A1B2C30410002 |
+----------------------------------------------------------------------------+
"""

# Version 1.2: narrower, no blank before the second bar, no slash between the powers.
OLD_SUMMARY = """\
+2026-01-01, 12:00:00 CST--------------------------------------------------+
|EFSMI    V1.2.0.301       Driver Ver: 1.2.0.301                           |
|--------------------------------------------------------------------------|
|--------------------------------------------------------------------------|
| DEV    NAME                | FW VER          | BUS-ID      ECC           |
| TEMP   Dpm   Pwr(Usage/Cap)| Mem     GCU Virt| DUsed       SN            |
|--------------------------------------------------------------------------|
| 0      S60                 | 33.6.2          | 00:0d:00.0  Disable       |
| 39 C   Sleep    105W  300W | 49120MiB Disable|   0.0%      A1B2C30410001 |
+--------------------------------------------------------------------------+
|--------------------------------------------------------------------------|
| 1      S60                 | 33.6.5          | 00:0f:00.0  Enable        |
| 46 C   Active   128W  300W | 42976MiB DRS|   0.0%      A1B2C30410002 |
+--------------------------------------------------------------------------+
"""

# Version 1.7: other rules, Lpm for Dpm, memory wider than its column, no power in a guest.
NEW_SUMMARY = """\
+2026-01-01, 12:00:00 CST-----------------------------------------------------+
| EFSMI: 1.7.2.14          Driver Ver: 1.7.2.14                               |
+-----------------------------+-------------------+---------------------------+
| DEV    NAME                 | Boot FW VER       | BUS-ID      ECC           |
| TEMP   Lpm   Pwr(Usage/Cap) | Mem      GCU Virt | DUsed       SN            |
|=============================================================================|
| 0      Enflame L300         | 40.2.8.3          | 00:0d:00.0  Enable        |
| 35℃    LP1      68W / 300W  | 147456MiB Disable | 0%          A1B2C30410001 |
+-----------------------------+-------------------+---------------------------+
| 1      Enflame S60G         | 31.5.3            | 00:0f:00.0  Disable       |
| 34℃    LP0      N/A         | 23552MiB  DRS     | 0%          A1B2C30410002 |
+-----------------------------+-------------------+---------------------------+
"""

INSTANCES = """\
+-----------------------------------------------------------------------------+
| GCU instances:                                                              |
|----------------------------------+----------------------------+-------------|
| GCU        Name           ID     | Mem (Usage/Total)          | SIP         |
+----------------------------------+----------------------------+-------------+
|  0         1g.6gb         1      |     0MiB /  6860MiB        | 4           |
+----------------------------------+----------------------------+-------------+
"""
