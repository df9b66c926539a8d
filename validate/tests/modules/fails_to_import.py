# SPDX-License-Identifier: Apache-2.0
raise ImportError("undefined symbol: _ZN3c105ErrorE")
