"""
A fuzzer: it draws hostile data and options, and says whether anything but a sound result or a clear refusal comes out.

A case is plain data that one whole number decides on (`problems`, `files`); it becomes objects, or a script of its own
(`session`); what comes out is judged (`judge`, `refusals`), and what is wrong is made small (`shrink`).
"""
